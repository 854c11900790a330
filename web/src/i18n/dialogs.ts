/** The texts of the palette and of the dialogs for sessions, loaded with them. */
import { translated } from '../state/preferences';

const en = {
  renameTitle: 'Rename session',
  save: 'Save',
  cancel: 'Cancel',
  deleteTitle: 'Delete this session?',
  deleteText: 'Its messages, events and files will be permanently deleted.',
  palette: 'Go to a session or run a command',
  nothingFound: 'No results.',
};

const zh: typeof en = {
  renameTitle: '重命名会话',
  save: '保存',
  cancel: '取消',
  deleteTitle: '删除该会话？',
  deleteText: '该会话的消息、事件和文件将被永久删除。',
  palette: '前往会话或执行命令',
  nothingFound: '无匹配结果',
};

export const useDialogMessages = translated({ en, zh });
