/** The texts of the options of a task, loaded with them. */
import { translated } from '../state/preferences';

const en = {
  title: 'Model, profile and folder',
  model: 'Model',
  profile: 'Profile',
  folder: 'Folder',
  folderHint: 'A folder of its own',
  byDefault: (name?: string) => (name === undefined ? 'Default' : `Default (${name})`),
  network: 'Network of isolated commands',
  networks: { off: 'None', registries: 'Package indexes', open: 'All hosts' },
  done: 'Done',
};

const zh: typeof en = {
  title: '模型、角色和文件夹',
  model: '模型',
  profile: '角色',
  folder: '文件夹',
  folderHint: '独立的文件夹',
  byDefault: (name?: string) => (name === undefined ? '默认' : `默认（${name}）`),
  network: '隔离命令的网络',
  networks: { off: '无', registries: '软件包索引', open: '所有主机' },
  done: '完成',
};

export const useTaskOptionMessages = translated({ en, zh });
