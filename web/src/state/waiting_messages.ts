/** The messages of the shown session that no model has read: they wait, or were given back. */
import { create } from 'zustand';
import { send } from '../api/client';
import type { MessagesPage, WaitingMessage } from '../api/types.gen';
import type { Envelope } from '../stream/events';
import { activeRun } from './event_reducer';
import { subscribe, useSessionStore } from './session_store';

export type { WaitingMessage };

const NONE: readonly WaitingMessage[] = [];

const useStore = create<{ session: string | null; messages: readonly WaitingMessage[] }>(() => ({
  session: null,
  messages: NONE,
}));

/** Events after which a message waits no more, besides the events about it. */
const ENDS = new Set(['workflow.input.received', 'workflow.lifecycle.updated', 'workflow.result.final', 'workflow.result.cancelled']);

export function useWaitingMessages(session: string): readonly WaitingMessage[] {
  return useStore((store) => (store.session === session ? store.messages : NONE));
}

let lastRequest = 0;

/** Load the messages of a session; without the server they stay as they are until the next event. */
async function loadWaiting(session: string): Promise<void> {
  const request = ++lastRequest;
  try {
    const response = await send(`${path(session)}/messages?limit=1`);
    const { waiting } = (await response.json()) as MessagesPage;
    if (request === lastRequest) useStore.setState({ session, messages: waiting });
  } catch {
    return; // it is tried again with the next event
  }
}

/** Load the messages now and whenever they may have changed; return a function that stops this. */
export function followWaiting(session: string): () => void {
  void loadWaiting(session);
  const unsubscribe = subscribe((event: Envelope) => {
    if (event.session_id !== session) return;
    const { messages } = useStore.getState();
    const isBusy = activeRun(useSessionStore.getState().state) !== undefined;
    const mayWait = messages.length > 0 || (isBusy && event.event === 'workflow.input.received');
    if (event.event === 'workflow.input.waiting' || (mayWait && ENDS.has(event.event))) void loadWaiting(session);
  });
  const stop = useSessionStore.subscribe((now, before) => {
    if (now.lostSince === null && before.lostSince !== null) void loadWaiting(session);
  });
  return () => {
    unsubscribe();
    stop();
  };
}

/** Replace the text of a message that waits. */
export async function editWaiting(session: string, number: number, text: string): Promise<void> {
  await send(`${path(session)}/waiting/${number}`, { method: 'PATCH', body: JSON.stringify({ text }) });
  await loadWaiting(session);
}

/** Take a message back, or settle one that was given back. */
export async function takeBack(session: string, number: number): Promise<void> {
  try {
    await send(`${path(session)}/waiting/${number}`, { method: 'DELETE' });
  } finally {
    await loadWaiting(session);
  }
}

function path(session: string): string {
  return `/api/sessions/${encodeURIComponent(session)}`;
}
