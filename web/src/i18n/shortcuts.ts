/** The texts of the list of keyboard shortcuts, loaded with it. */
import { translated } from '../state/preferences';

const en = {
  palette: 'Open the command palette',
  composer: 'Write a message',
  rows: 'Next and previous row',
  open: 'Expand or collapse the row',
  stop: 'Stop the run (press twice)',
  queue: 'Send as the next task',
  yes: 'Yes: allow once, approve, continue',
  session: 'Allow for this session',
  rule: 'Allow with a rule',
  no: 'No: deny, reject, decline',
  because: 'Deny with a reason · edit the plan · write an answer',
  feedback: 'Request changes to the plan',
  options: 'Choose an option, or exclude a call',
  answer: 'Send the answer',
  list: 'Show this list',
};

const zh: typeof en = {
  palette: '打开命令面板',
  composer: '输入消息',
  rows: '下一行、上一行',
  open: '展开或收起该行',
  stop: '停止运行（按两次）',
  queue: '作为下一个任务发送',
  yes: '是：允许一次、批准、继续',
  session: '在本会话中允许',
  rule: '允许并添加规则',
  no: '否：拒绝、不作答',
  because: '拒绝并说明原因 · 编辑计划 · 输入答复',
  feedback: '要求修改计划',
  options: '选择选项，或排除某个调用',
  answer: '发送答复',
  list: '显示此列表',
};

export const useShortcutMessages = translated({ en, zh });
