/** The texts of the login form, loaded with it. */
import { translated } from '../state/preferences';

const en = {
  title: 'Log in',
  text: 'Run larkspur open on the machine of the gateway and follow its link, or enter its code. A link works once, within five minutes.',
  used: 'This link was already used, or is older than five minutes. Run larkspur open for a new one.',
  expired: 'Your login has expired. Your draft is saved. Run larkspur open and follow its link in any tab, or enter its code.',
  code: 'Code',
  logIn: 'Log in',
};

const zh: typeof en = {
  title: '登录',
  text: '在网关所在的机器上运行 larkspur open 并打开它给出的链接，或输入链接中的验证码。链接仅可使用一次，五分钟内有效。',
  used: '该链接已被使用，或已超过五分钟。请运行 larkspur open 获取新链接。',
  expired: '登录已过期，草稿已保存。请运行 larkspur open 并在任意标签页打开它给出的链接，或输入其中的验证码。',
  code: '验证码',
  logIn: '登录',
};

export const useLoginMessages = translated({ en, zh });
