/** Tasks that were moved to the background in this tab: messages start new tasks beside them. */
import { create } from 'zustand';
import { api } from '../api/client';

const KEY = 'larkspur.moved';
const MAX_TASKS = 100;

function load(): ReadonlySet<string> {
  try {
    return new Set(JSON.parse(sessionStorage.getItem(KEY) ?? '[]') as string[]);
  } catch {
    return new Set(); // storage is blocked
  }
}

export const useMovedTasks = create<{ tasks: ReadonlySet<string> }>(() => ({ tasks: load() }));

/** Let the next task of the session start beside this one. */
export async function moveToBackground(task: string): Promise<void> {
  await api.moveToBackground(task);
  const tasks = new Set([...useMovedTasks.getState().tasks, task].slice(-MAX_TASKS));
  useMovedTasks.setState({ tasks });
  try {
    sessionStorage.setItem(KEY, JSON.stringify([...tasks]));
  } catch {
    // storage is blocked
  }
}
