/** The texts of the login form, loaded with it. */
import { usePreferences, type Language } from '../state/preferences';

const en = {
  title: 'Log in',
  text: 'Open the link that larkspur serve printed, or enter its code. A link works once, within five minutes.',
  expired: 'Your session has expired. Your draft is saved. Open a new link in any tab, or enter its code.',
  code: 'Code',
  logIn: 'Log in',
};

const zh: typeof en = {
  title: '登录',
  text: '打开 larkspur serve 输出的链接，或输入其中的验证码。链接仅可使用一次，五分钟内有效。',
  expired: '登录已过期，草稿已保存。请在任意标签页打开新链接，或输入其中的验证码。',
  code: '验证码',
  logIn: '登录',
};

const TEXTS: Record<Language, typeof en> = { en, zh };

export function useLoginMessages(): typeof en {
  return TEXTS[usePreferences((preferences) => preferences.language)];
}
