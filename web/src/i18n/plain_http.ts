/** The notice about a page that was opened over plain http, loaded with it. */
import { translated } from '../state/preferences';

const en = {
  text: 'This page was opened over plain http. What it sends and shows is not encrypted, and the browser has no notifications here and does not install the page as an application. An https address has all of this.',
  dismiss: 'Do not show again',
};

const zh: typeof en = {
  text: '本页通过普通 http 打开。发送和显示的内容没有加密，浏览器在这里不提供通知，也不能把本页安装为应用。使用 https 地址就没有这些限制。',
  dismiss: '不再显示',
};

export const usePlainHttpMessages = translated({ en, zh });
