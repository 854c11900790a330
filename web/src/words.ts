/** Every word of the page, in both languages. A key that one of them lacks does not compile. */
import { usePreferences, type Language } from './preferences';

const en = {
  product: 'Larkspur',
  newSession: 'New session',
  search: 'Search sessions',
  sessions: 'Sessions',
  conversation: 'Conversation',
  today: 'Today',
  earlier: 'Earlier',
  noSessions: 'No session yet.',
  nothingFound: 'Nothing found.',
  untitled: 'Untitled',
  menu: 'Sessions',
  panel: 'Plan, usage and files',
  close: 'Close',
  theme: 'Theme',
  themes: { system: 'System', light: 'Light', dark: 'Dark' },
  language: '中文',
  logOut: 'Log out',
  shortcuts: 'Keys',
  emptyLead: 'Say what is to be done; every step shows here as it happens.',
  emptyTry: 'Try one of these',
  examples: [
    { text: 'what is 6*7?', mode: 'ask' },
    { text: 'list the files here', mode: 'ask' },
    {
      text: 'write a haiku about lark to notes.md, then count the words in notes.md, then read notes.md',
      mode: 'accept-edits',
    },
  ],
  offline: 'The offline demo model answers. Set ANTHROPIC_API_KEY for a real one.',
  dismiss: 'Dismiss',
  message: 'Message',
  placeholder: 'Say what is to be done…',
  steerPlaceholder: 'Steer the run at work…',
  attach: 'Attach files',
  send: 'Send',
  steer: 'Steer',
  queueHint: 'queue as the next task',
  stop: 'Stop',
  stopAgain: 'Press Esc again to stop the run.',
  remove: (name: string) => `Remove ${name}`,
  mode: 'Permissions',
  modes: { ask: 'Ask', plan: 'Plan only', 'accept-edits': 'Accept edits', full: 'Full access' },
  tooLarge: (name: string) => `${name} is larger than 14 MB.`,
  unreadable: (name: string) => `${name} cannot be read.`,
  unreachable: 'The server is not reached. Your text is kept; try again.',
  reconnecting: 'Reconnecting…',
  loading: 'Loading…',
  missing: 'This session is not here. It may have been deleted.',
  toEnd: 'To the end',
  you: 'You',
  agent: 'Larkspur',
  steered: 'steering',
  via: (channel: string) => `via ${channel}`,
  plan: 'Plan',
  thinking: 'thinking',
  startsOver: 'The model’s connection broke; the reply starts over.',
  lost: 'Part of this was left out; the whole comes with the result.',
  question: 'Question',
  answered: 'answered',
  arguments: 'Arguments',
  result: 'Result',
  output: 'Output so far',
  error: 'Error',
  nothing: 'nothing',
  showAll: (size: string) => `Show all ${size} characters`,
  subtask: 'Subtask',
  steps: (count: number) => (count === 1 ? '1 step' : `${count} steps`),
  overview: 'Overview',
  files: 'Files',
  noFiles: 'Files of this session show here.',
  noPlan: 'No plan yet.',
  usage: 'Usage',
  tasks: 'Tasks',
  tokensIn: 'Tokens in',
  short: { in: 'in', out: 'out' },
  tokensOut: 'Tokens out',
  tokensCached: 'Tokens cached',
  cost: 'Cost',
  costUnknown: 'no price known',
  download: 'Download',
  rename: 'Rename',
  renameTitle: 'Rename the session',
  save: 'Save',
  cancel: 'Cancel',
  delete: 'Delete',
  deleteTitle: 'Delete this session?',
  deleteText: 'Its messages, runs and events are deleted for good.',
  remoteImage: 'image, not loaded',
  palette: 'Go to a session or do something',
  status: {
    queued: 'queued',
    running: 'running',
    waiting: 'waiting',
    completed: 'completed',
    failed: 'failed',
    cancelled: 'cancelled',
  },
  reasons: {
    await_user_input: 'waits for a person',
    budget_exceeded: 'the budget is used up',
    error: 'error',
    final_answer: 'done',
    interrupted: 'interrupted',
    max_iterations: 'most iterations reached',
    rejected: 'rejected',
    timeout: 'timeout',
    user_stop: 'stopped',
  },
  loginTitle: 'Log in',
  loginText: 'Open the link that larkspur serve printed, or enter its code. Each works once, for five minutes.',
  loginKept: 'Your login has ended; what you wrote is kept. Open a new link in any tab, or enter its code.',
  code: 'Code',
  logIn: 'Log in',
  keys: {
    palette: 'Command palette',
    composer: 'Write a message',
    rows: 'Next and previous row',
    open: 'Open or close the row',
    stop: 'Stop the run (asks once)',
    queue: 'Send as the next task',
    sheet: 'This sheet',
  },
};

export type Words = typeof en;

const zh: Words = {
  product: 'Larkspur',
  newSession: '新会话',
  search: '搜索会话',
  sessions: '会话',
  conversation: '对话',
  today: '今天',
  earlier: '更早',
  noSessions: '还没有会话。',
  nothingFound: '没有找到。',
  untitled: '未命名',
  menu: '会话',
  panel: '计划、用量与文件',
  close: '关闭',
  theme: '主题',
  themes: { system: '跟随系统', light: '浅色', dark: '深色' },
  language: 'English',
  logOut: '退出登录',
  shortcuts: '快捷键',
  emptyLead: '说出要做的事，每一步都会实时显示在这里。',
  emptyTry: '可以试试',
  examples: [
    { text: '算 6*7', mode: 'ask' },
    { text: '列出文件', mode: 'ask' },
    {
      text: '写一首关于云雀的俳句到 notes.md，然后统计 notes.md 的字数，然后读一下 notes.md',
      mode: 'accept-edits',
    },
  ],
  offline: '当前由离线演示模型回答。设置 ANTHROPIC_API_KEY 即可使用真正的模型。',
  dismiss: '知道了',
  message: '消息',
  placeholder: '说出要做的事……',
  steerPlaceholder: '给正在运行的任务补充说明……',
  attach: '添加文件',
  send: '发送',
  steer: '补充',
  queueHint: '排为下一个任务',
  stop: '停止',
  stopAgain: '再按一次 Esc 停止运行。',
  remove: (name) => `移除 ${name}`,
  mode: '权限',
  modes: { ask: '询问', plan: '仅计划', 'accept-edits': '允许编辑', full: '完全放行' },
  tooLarge: (name) => `${name} 超过 14 MB。`,
  unreadable: (name) => `无法读取 ${name}。`,
  unreachable: '连接不到服务器。内容已保留，请重试。',
  reconnecting: '正在重新连接……',
  loading: '加载中……',
  missing: '这个会话不在这里，可能已被删除。',
  toEnd: '到最新',
  you: '你',
  agent: 'Larkspur',
  steered: '补充说明',
  via: (channel) => `来自 ${channel}`,
  plan: '计划',
  thinking: '思考中',
  startsOver: '模型连接中断，正在重新回答。',
  lost: '这里缺了一部分，完整内容随结果一起到。',
  question: '问题',
  answered: '已回答',
  arguments: '参数',
  result: '结果',
  output: '目前的输出',
  error: '错误',
  nothing: '（空）',
  showAll: (size) => `显示全部 ${size} 个字符`,
  subtask: '子任务',
  steps: (count) => `${count} 步`,
  overview: '概览',
  files: '文件',
  noFiles: '会话里的文件会显示在这里。',
  noPlan: '还没有计划。',
  usage: '用量',
  tasks: '任务',
  tokensIn: '输入 token',
  short: { in: '输入', out: '输出' },
  tokensOut: '输出 token',
  tokensCached: '缓存 token',
  cost: '费用',
  costUnknown: '未知单价',
  download: '下载',
  rename: '重命名',
  renameTitle: '重命名会话',
  save: '保存',
  cancel: '取消',
  delete: '删除',
  deleteTitle: '删除这个会话？',
  deleteText: '其中的消息、运行与事件将被永久删除。',
  remoteImage: '图片，未加载',
  palette: '前往会话或执行操作',
  status: {
    queued: '排队中',
    running: '运行中',
    waiting: '等待中',
    completed: '已完成',
    failed: '失败',
    cancelled: '已取消',
  },
  reasons: {
    await_user_input: '等待答复',
    budget_exceeded: '预算已用完',
    error: '出错',
    final_answer: '完成',
    interrupted: '被中断',
    max_iterations: '达到迭代上限',
    rejected: '被拒绝',
    timeout: '超时',
    user_stop: '已停止',
  },
  loginTitle: '登录',
  loginText: '打开 larkspur serve 打印的链接，或输入其中的代码。每个代码只能用一次，五分钟内有效。',
  loginKept: '登录已过期，你写的内容已保留。在任意标签页打开新链接，或输入其中的代码。',
  code: '代码',
  logIn: '登录',
  keys: {
    palette: '命令面板',
    composer: '写消息',
    rows: '下一行与上一行',
    open: '展开或收起该行',
    stop: '停止运行（会先确认）',
    queue: '作为下一个任务发送',
    sheet: '本页',
  },
};

export const DICTIONARIES: Record<Language, Words> = { en, zh };

export function useWords(): Words {
  return DICTIONARIES[usePreferences((preferences) => preferences.language)];
}

export function formatDuration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 1) return `${Math.round(milliseconds)}ms`;
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  if (seconds < 60) return `${Math.round(seconds)}s`;
  return `${Math.floor(seconds / 60)}m${String(Math.round(seconds % 60)).padStart(2, '0')}s`;
}

export function formatCount(count: number): string {
  if (count < 1000) return String(count);
  const thousands = count / 1000;
  return thousands < 1000 ? `${trimmed(thousands)}k` : `${trimmed(thousands / 1000)}M`;
}

function trimmed(value: number): string {
  return value.toFixed(value < 100 ? 1 : 0).replace(/\.0$/, '');
}

export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const kibibytes = bytes / 1024;
  return kibibytes < 1024 ? `${trimmed(kibibytes)} KB` : `${trimmed(kibibytes / 1024)} MB`;
}

export function formatCost(dollars: number): string {
  return dollars < 0.01 && dollars > 0 ? `$${dollars.toPrecision(1)}` : `$${dollars.toFixed(2)}`;
}

export function formatTime(time: string, language: Language): string {
  const locale = language === 'zh' ? 'zh-CN' : 'en-GB';
  return new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' }).format(
    new Date(time),
  );
}
