/** The texts of messages that no model has read, loaded with their rows. */
import { translated } from '../state/preferences';

const en = {
  next_step: 'waits for the next step',
  next_task: 'waits for the end of the run',
  given_back: 'not delivered: the run ended before it read this, and nothing was started',
  edit: 'Edit',
  text: 'The text of the message',
  takeBack: 'Take back',
  save: 'Save',
  cancel: 'Cancel',
  insert: 'Put into the message field',
  dismiss: 'Dismiss',
};

const zh: typeof en = {
  next_step: '等待下一步',
  next_task: '等待当前运行结束',
  given_back: '未送达：运行在读到之前已结束，没有开始任何新任务',
  edit: '编辑',
  text: '消息内容',
  takeBack: '撤回',
  save: '保存',
  cancel: '取消',
  insert: '放回输入框',
  dismiss: '忽略',
};

export const useWaitingTexts = translated({ en, zh });
