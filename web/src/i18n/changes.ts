/** The texts about the files of the workspace, loaded with the panel. */
import { translated } from '../state/preferences';

const en = {
  changed: 'Changed files',
  kinds: { created: 'new', changed: 'changed', deleted: 'deleted' },
  undone: 'undone',
  undo: 'Undo this change',
  open: 'Open the file as it is now',
  more: (count: number) => (count === 1 ? '1 more file was changed.' : `${count} more files were changed.`),
  incomplete: 'Not all of the workspace was looked at, because it is too large or was replaced: more files may have been changed.',
  notes: {
    secret: 'By its name this file holds secrets: its content is not shown.',
    binary: 'This is not a text file.',
    not_kept: 'The content before or after the run was not kept: the file is too large, too much is kept already, or no call named the file.',
    cut: 'The beginning of the difference is shown.',
  },
  workspace: 'Workspace',
  search: 'Search files by name',
  empty: 'The folder is empty.',
  nothing: 'No file has this name.',
  cut: 'Not everything is listed. Search by name.',
};

const zh: typeof en = {
  changed: '改动的文件',
  kinds: { created: '新建', changed: '修改', deleted: '删除' },
  undone: '已撤销',
  undo: '撤销此改动',
  open: '打开当前的文件',
  more: (count) => `另有 ${count} 个文件被改动。`,
  incomplete: '工作区过大或已被取代，未能全部检查，可能还有其他文件被改动。',
  notes: {
    secret: '从名称看，此文件含有机密，不显示其内容。',
    binary: '这不是文本文件。',
    not_kept: '未保留运行前或运行后的内容：文件过大、保留的内容已达上限，或没有调用指明此文件。',
    cut: '仅显示差异的开头部分。',
  },
  workspace: '工作区',
  search: '按名称搜索文件',
  empty: '文件夹为空。',
  nothing: '没有此名称的文件。',
  cut: '未全部列出，请按名称搜索。',
};

export const useChangeMessages = translated({ en, zh });
