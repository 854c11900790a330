/** What each permission mode does, as in the terminal and in chats, loaded with the dialog that chooses one. */
import enModes from '../../../internal/i18n/modes.en.json';
import zhModes from '../../../internal/i18n/modes.zh.json';
import type { Mode } from '../api/client';
import { translated } from '../state/preferences';

interface Messages {
  byDefault: string;
  sentences: Record<Mode, string>;
  isolated: string;
  notIsolated: string;
}

const en: Messages = {
  byDefault: 'default',
  sentences: enModes.messages,
  isolated: 'Commands run isolated in every mode. The choice is for this session; a new one begins with the default.',
  notIsolated: 'Commands are not isolated on this machine: they have your rights. The choice is for this session; a new one begins with the default.',
};

const zh: Messages = {
  byDefault: '默认',
  sentences: zhModes.messages,
  isolated: '在每种模式下命令都隔离运行。选择只对本会话有效；新会话使用默认模式。',
  notIsolated: '本机的命令没有隔离，拥有你的权限。选择只对本会话有效；新会话使用默认模式。',
};

export const useModeMessages = translated({ en, zh });
