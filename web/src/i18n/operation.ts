/** The texts about dead letters and processes, loaded with them. */
import { translated } from '../state/preferences';

const en = {
  letters: 'Dead letters',
  processes: 'Processes',
  failed: 'This cannot be loaded.',
  deadLettersLead: 'Messages that could not be processed or sent, and tasks whose process died each time. Retry when the cause is gone.',
  noDeadLetters: 'Nothing was given up.',
  processesLead: 'The gateways and workers of the database. Others continue the runs of one that has ended.',
  processRoles: { gateway: 'Gateway', channels: 'Gateway without runs', worker: 'Worker' },
  since: 'Since',
  activeRuns: 'Runs',
  lease: 'Lease',
  renewed: (time: string) => `renewed ${time} ago`,
  hasEnded: 'ended',
  leads: (names: string) => `leads ${names}`,
  letterKinds: { incoming: 'Message not processed', outgoing: 'Message not sent', run: 'Task failed' },
  givenUp: 'Given up',
  decision: 'Decision',
  retry: 'Retry',
  sendAnyway: 'Send anyway',
  mayAppearTwice: 'It may have been sent. Sent again, it may appear twice.',
  dismiss: 'Dismiss',
};

const zh: typeof en = {
  letters: '死信',
  processes: '进程',
  failed: '无法加载。',
  deadLettersLead: '无法处理或无法发送的消息，以及进程每次都意外退出的任务。原因消除后可以重试。',
  noDeadLetters: '没有被放弃的消息或任务。',
  processesLead: '使用此数据库的网关和工作进程。已结束的进程的任务由其他进程继续。',
  processRoles: { gateway: '网关', channels: '不执行任务的网关', worker: '工作进程' },
  since: '启动时间',
  activeRuns: '任务',
  lease: '租约',
  renewed: (time) => `${time}前续约`,
  hasEnded: '已结束',
  leads: (names) => `负责 ${names}`,
  letterKinds: { incoming: '消息未处理', outgoing: '消息未发送', run: '任务失败' },
  givenUp: '放弃时间',
  decision: '决定',
  retry: '重试',
  sendAnyway: '仍然发送',
  mayAppearTwice: '可能已经送达，重发后可能出现两次。',
  dismiss: '忽略',
};

export const useOperationMessages = translated({ en, zh });
