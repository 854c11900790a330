/** The texts of lanes and of the Tasks page, loaded with them. */
import { translated } from '../state/preferences';

const en = {
  groups: { needs_me: 'Needs me', running: 'Running', done: 'Done' },
  none: 'No tasks yet.',
  noneOf: { needs_me: 'Nothing waits for you.', running: 'Nothing runs.', done: 'Nothing is done yet.' },
  lanes: 'Subtasks',
  of: (parent: string) => `of “${parent}”`,
  waitsForYou: 'waits for you',
  waitsForTasks: 'waits for its tasks',
  waitsFor: (numbers: readonly number[]) => `waits for task ${numbers.join(', ')}`,
  blocked: 'blocked: a task it depends on failed',
  doneIn: (time: string) => `done in ${time}`,
  files: (count: number) => (count === 1 ? '1 file' : `${count} files`),
  stop: 'Stop',
  stopTask: (path: string) => `Stop ${path}`,
  message: (path: string) => `Message to ${path}`,
  hint: 'Add instructions…',
  send: 'Send',
};

const zh: typeof en = {
  groups: { needs_me: '需要我', running: '运行中', done: '已结束' },
  none: '还没有任务。',
  noneOf: { needs_me: '没有等待你的任务。', running: '没有正在运行的任务。', done: '还没有结束的任务。' },
  lanes: '子任务',
  of: (parent) => `属于“${parent}”`,
  waitsForYou: '等待你的答复',
  waitsForTasks: '等待其子任务',
  waitsFor: (numbers) => `等待任务 ${numbers.join('、')}`,
  blocked: '已阻止：它依赖的任务失败了',
  doneIn: (time) => `用时 ${time} 完成`,
  files: (count) => `${count} 个文件`,
  stop: '停止',
  stopTask: (path) => `停止${path}`,
  message: (path) => `发送给${path}的消息`,
  hint: '补充说明……',
  send: '发送',
};

export type TaskMessages = typeof en;

export const useTaskMessages = translated({ en, zh });
