/** The texts of the start page, loaded with it. */
import type { Mode } from '../api/client';
import { translated } from '../state/preferences';

interface Example {
  text: string;
  /** The mode that it needs where commands are not isolated. */
  mode: Mode;
}

const en = {
  title: 'Describe a task. Every step appears here as it happens.',
  examplesTitle: 'Try an example',
  examples: [
    { text: 'what is 6*7?', mode: 'ask' },
    { text: 'list the files here', mode: 'ask' },
    {
      text: 'write a haiku about lark to notes.md, then count the words in notes.md, then read notes.md',
      mode: 'edit',
    },
    { text: 'compare these three sites: example-a.com, example-b.com, example-c.com', mode: 'ask' },
  ] as Example[],
  offline: 'You are using the offline demo model.',
  addKey: 'Paste a key',
  dismiss: 'Continue with the demo',
};

const zh: typeof en = {
  title: '描述你的任务，每一步都会实时显示在这里。',
  examplesTitle: '试试这些示例',
  examples: [
    { text: '算 6*7', mode: 'ask' },
    { text: '列出文件', mode: 'ask' },
    {
      text: '写一首关于云雀的俳句到 notes.md，然后统计 notes.md 的字数，然后读一下 notes.md',
      mode: 'edit',
    },
    { text: '比较这三个网站：example-a.com、example-b.com、example-c.com', mode: 'ask' },
  ],
  offline: '当前使用离线演示模型。',
  addKey: '粘贴密钥',
  dismiss: '继续使用演示模型',
};

export const useWelcomeMessages = translated({ en, zh });
