/** The texts of what can be done with a run, loaded with it. */
import { usePreferences, type Language } from '../state/preferences';

const en = {
  copy: 'Copy the answer',
  copied: 'Copied',
  code: 'Code',
  copyCode: 'Copy the code',
  retry: 'Retry',
  retryHint: 'Run the same message again',
  resume: 'Resume',
  resumeHint: 'Continue this run after its last finished step',
};

const zh: typeof en = {
  copy: '复制回答',
  copied: '已复制',
  code: '代码',
  copyCode: '复制代码',
  retry: '重试',
  retryHint: '重新运行同一条消息',
  resume: '继续',
  resumeHint: '从最后完成的步骤继续此次运行',
};

const TEXTS: Record<Language, typeof en> = { en, zh };

export function useRunActionMessages(): typeof en {
  return TEXTS[usePreferences((preferences) => preferences.language)];
}
