import type { ApprovalItem } from '../stream/events';

/** What a call does. */
export type Action = NonNullable<ApprovalItem['action']>;

/** Which subtask it is. `number` is 0 for none, and where an earlier version told its `path` only. */
export interface SubtaskPlace {
  number: number;
  role: string;
  path: string;
}

/** The English texts of the page. Other languages have the same keys. */
export const en = {
  product: 'Larkspur',
  newSession: 'New session',
  sessions: 'Sessions',
  conversation: 'Conversation',
  untitled: 'Untitled',
  menu: 'Sessions',
  panel: 'Plan, usage and files',
  close: 'Close',
  theme: 'Theme',
  themes: { system: 'System', light: 'Light', dark: 'Dark' },
  language: '中文',
  logOut: 'Log out',
  notifications: 'Notify me when something waits or ends',
  notices: { waits: 'Waiting for you', completed: 'Completed', incomplete: 'Not all was done', failed: 'Failed' },
  shortcuts: 'Keyboard shortcuts',
  message: 'Message',
  placeholder: 'Describe a task…',
  steerPlaceholder: 'Steer the current run…',
  attach: 'Attach files',
  send: 'Send',
  steer: 'Steer',
  queueHint: 'queue as the next task',
  stop: 'Stop',
  toBackground: 'Move to the background',
  report: 'Report of ended background tasks',
  stopAgain: 'Press Esc again to stop the run.',
  mode: 'Permissions',
  folder: 'Folder',
  modes: { plan: 'Plan only', deny: 'Deny', ask: 'Ask first', edit: 'Edit files', run: 'Edit and run', all: 'Everything' },
  unreachable: 'Can’t reach the server. Your draft is saved.',
  writtenBefore: 'This was written before the question: nothing was allowed. Send it again to answer.',
  unsent: 'Can’t reach the server. The message is sent when it answers again.',
  dontSend: 'Don’t send',
  reconnecting: 'Reconnecting…',
  loading: 'Loading…',
  missing: 'This session does not exist any more.',
  partFailed: 'This part of the page cannot be shown.',
  pageFailed: 'The page cannot be shown.',
  tryAgain: 'Try again',
  reloadPage: 'Reload the page',
  toEnd: 'Jump to the end',
  you: 'You',
  agent: 'Larkspur',
  ownCommand: 'Your command',
  steered: 'steering',
  resumed: 'Resumed',
  via: (channel: string) => `via ${channel}`,
  channels: { cli: 'the terminal', lark: 'Lark', mcp: 'an MCP client', tasks: 'the creating task', web: 'the web page' },
  plan: 'Plan',
  thinking: 'Thinking',
  writing: 'Writing',
  working: 'Working',
  tokens: (count: string) => `${count} tokens`,
  thought: (time: string) => `Thought for ${time}`,
  lost: 'Part of this output was skipped.',
  question: 'Question',
  waiting: 'Waiting',
  tasks: 'Tasks',
  awaitsTasks: 'waits for its tasks',
  awaitsTasksPlaceholder: 'The run waits for its tasks. A message reaches it at once…',
  /** The place of a subtask; `path` is all that earlier versions tell. */
  subtask: ({ number, role, path }: SubtaskPlace) => (number === 0 ? path : `task ${number}${role && ` · ${role}`}`),
  library: 'Library',
  settings: 'Settings',
  nextQuestion: 'Next question',
  waitsPlaceholder: 'The run is waiting for an answer. A message becomes the next task…',
  answerPlaceholder: {
    approval: 'Type yes or no, or what to do instead…',
    plan: 'Type yes, or what to change…',
    clarify: 'Type your answer…',
    recovery: 'Type what to do differently…',
  },
  answer: 'Answer',
  isolated: {
    off: 'isolated · no network',
    registries: 'isolated · package indexes',
    hosts: 'isolated · some hosts',
    open: 'isolated · with network',
  },
  isolatedHelp: 'Commands see the folder of the session only. They reach the network as the settings allow.',
  notIsolated: 'not isolated',
  notIsolatedHelp: 'Commands run on this machine with the permissions of the gateway.',
  asNewTask: 'New task',
  reviewPlan: 'Review the plan first',
  askCommand: 'Run this command?',
  ask: {
    create: (file: string) => `Create ${file}?`,
    change: (file: string) => `Change ${file}?`,
    read: (file: string) => `Read ${file}?`,
    run: (command: string) => `Run \`${command}\`?`,
    fetch: (host: string) => `Fetch ${host}?`,
    trust: (source: string) => `Trust ${source}?`,
    use: (tool: string) => `Allow ${tool}?`,
  },
  /** What several calls do, with the number of calls for each action. */
  askSeveral: (counts: ReadonlyArray<readonly [Action, number]>) => {
    const nouns: Record<Action, readonly [string, string]> = {
      create: ['create', 'file'],
      change: ['change', 'file'],
      read: ['read', 'file'],
      run: ['run', 'command'],
      fetch: ['fetch', 'page'],
      trust: ['trust', 'source'],
      use: ['use', 'other tool'],
    };
    const parts = counts.map(([action, count]) => {
      const [verb, noun] = nouns[action];
      return `${verb} ${count} ${noun}${count === 1 ? '' : 's'}`;
    });
    const text = new Intl.ListFormat('en').format(parts);
    return `${text.charAt(0).toUpperCase()}${text.slice(1)}?`;
  },
  approvePlan: 'Approve this plan?',
  how: {
    expired: 'expired, not run',
    approve: 'approved',
    edit: 'edited',
    reject: 'rejected',
    feedback: 'changes requested',
    text: 'answered',
    once: 'allowed once',
    session: 'allowed for this session',
    rule: 'allowed with a rule',
    no: 'denied',
    some: (yes: number, all: number) => `allowed ${yes} of ${all}`,
    declined: 'declined',
    goOn: 'yes, continue',
  },
  arguments: 'Arguments',
  result: 'Result',
  output: 'Output so far',
  error: 'Error',
  nothing: '(empty)',
  showAll: (size: string) => `Show all ${size} characters`,
  short: { in: 'in', out: 'out' },
  rename: 'Rename',
  delete: 'Delete',
  remoteImage: 'image not loaded',
  status: {
    queued: 'queued',
    running: 'running',
    waiting: 'waiting',
    completed: 'completed',
    failed: 'failed',
    cancelled: 'cancelled',
  },
  /** Why a run was stopped, by the code of the reason. */
  stops: {
    stopped: 'stopped',
    plan_rejected: 'the plan was rejected',
    recalled: 'the message was recalled',
    left_chat: 'the bot was removed from the chat',
    interrupted: 'interrupted by a new message',
    interrupted_by_other: 'interrupted by a message of another person',
    creator: 'stopped by the task that created it',
  } as Record<string, string>,
};

export type Messages = typeof en;
