/** The texts of what can be done with a run, loaded with it. */
import { usePreferences, type Language } from '../state/preferences';

const en = {
  copy: 'Copy the answer',
  copied: 'Copied',
  code: 'Code',
  copyCode: 'Copy the code',
  regenerate: 'Answer again, in a branch',
  branch: 'Branch from here',
  edit: 'Edit and send in a branch',
  send: 'Send',
  cancel: 'Cancel',
  earlier: 'Earlier conversation',
  showEarlier: 'Show earlier messages',
  branchedFrom: 'Branched from another session',
  good: 'Good answer',
  bad: 'Bad answer',
  comment: 'Comment on the answer',
  commentHint: 'What was good or bad? (optional)',
  save: 'Save',
  changeModel: 'Change model',
  modelSettings: 'Settings of the models',
  enterKey: 'Enter another key',
  retry: 'Retry',
  retryHint: 'Run the same message again',
  resume: 'Resume',
  goOn: 'Go on',
  goOnHint: 'Send “Go on”: the next run continues from here',
  resumeHint: 'Continue this run after its last finished step',
};

const zh: typeof en = {
  copy: '复制回答',
  copied: '已复制',
  code: '代码',
  copyCode: '复制代码',
  regenerate: '在分支中重新回答',
  branch: '从此处创建分支',
  edit: '编辑并在分支中发送',
  send: '发送',
  cancel: '取消',
  earlier: '之前的对话',
  showEarlier: '显示更早的消息',
  branchedFrom: '从另一个会话分支而来',
  good: '回答得好',
  bad: '回答得不好',
  comment: '评论此回答',
  commentHint: '哪里好或不好？（可选）',
  save: '保存',
  changeModel: '更换模型',
  modelSettings: '模型设置',
  enterKey: '输入其他密钥',
  retry: '重试',
  retryHint: '重新运行同一条消息',
  resume: '继续',
  goOn: '继续做',
  goOnHint: '发送“继续做”，由下一次运行接着完成',
  resumeHint: '从最后完成的步骤继续此次运行',
};

const TEXTS: Record<Language, typeof en> = { en, zh };

export function useRunActionMessages(): typeof en {
  return TEXTS[usePreferences((preferences) => preferences.language)];
}
