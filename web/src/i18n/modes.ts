/** What each permission mode does, loaded with the dialog that chooses one. */
import type { Mode } from '../api/client';
import { usePreferences, type Language } from '../state/preferences';

interface Messages {
  byDefault: string;
  sentences: Record<Mode, string>;
  isolated: string;
  notIsolated: string;
}

const en: Messages = {
  byDefault: 'default',
  sentences: {
    plan: 'Reads only: nothing is changed or run.',
    deny: 'Reads only: whatever would need your approval is denied.',
    ask: 'Reads without asking; asks before each change and command.',
    edit: 'Also changes files without asking; asks before commands and before files that configure programs.',
    run: 'Also runs isolated commands without asking; asks before what leaves the sandbox.',
    all: 'Also runs any command without asking, with any host and path that it names. Deny rules still hold.',
  },
  isolated: 'Commands run isolated in every mode. The choice is for this session; a new one begins with the default.',
  notIsolated: 'Commands are not isolated on this machine: they have your rights. The choice is for this session; a new one begins with the default.',
};

const zh: Messages = {
  byDefault: '默认',
  sentences: {
    plan: '只读：不修改文件，也不运行命令。',
    deny: '只读：需要你批准的操作一律拒绝。',
    ask: '读取无需询问；每次修改和运行命令前都会询问。',
    edit: '修改文件也无需询问；运行命令、修改程序的配置文件前会询问。',
    run: '隔离的命令也无需询问；要离开沙箱时才询问。',
    all: '任何命令及其要用到的主机和路径都无需询问。拒绝规则仍然有效。',
  },
  isolated: '在每种模式下命令都隔离运行。选择只对本会话有效；新会话使用默认模式。',
  notIsolated: '本机的命令没有隔离，拥有你的权限。选择只对本会话有效；新会话使用默认模式。',
};

const TEXTS: Record<Language, Messages> = { en, zh };

export function useModeMessages(): Messages {
  return TEXTS[usePreferences((preferences) => preferences.language)];
}
