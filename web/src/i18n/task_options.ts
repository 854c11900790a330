/** The texts of the options of a task, loaded with them. */
import { usePreferences, type Language } from '../state/preferences';

const en = {
  title: 'Model, profile and folder',
  model: 'Model',
  profile: 'Profile',
  folder: 'Folder',
  folderHint: 'A folder of its own',
  byDefault: (name: string) => `Default (${name})`,
  done: 'Done',
};

const zh: typeof en = {
  title: '模型、角色和文件夹',
  model: '模型',
  profile: '角色',
  folder: '文件夹',
  folderHint: '独立的文件夹',
  byDefault: (name: string) => `默认（${name}）`,
  done: '完成',
};

const TEXTS: Record<Language, typeof en> = { en, zh };

export function useTaskOptionMessages(): typeof en {
  return TEXTS[usePreferences((preferences) => preferences.language)];
}
