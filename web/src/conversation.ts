/** The session that this tab shows: its history by pages, then live, one change a frame. */
import { create } from 'zustand';
import { api, ApiError } from './api';
import type { Envelope } from './events';
import { dropped, fold } from './fold';
import { EMPTY, isAfter, type Row, type State } from './state';
import { Hub } from './hub';
import type { Frame } from './stream';

export interface Conversation {
  session: string | null;
  state: State;
  phase: 'none' | 'loading' | 'ready' | 'missing' | 'failed';
  /** When the stream was lost; null while it stands. */
  lostSince: number | null;
  /** Somebody must log in before anything is shown or sent. */
  loggedOut: boolean;
}

export const useConversation = create<Conversation>(() => ({
  session: null,
  state: EMPTY,
  phase: 'none',
  lostSince: null,
  loggedOut: false,
}));

const set = useConversation.setState;
const get = useConversation.getState;

let waiting: Row[] = [];
let scheduled = false;
let reading = 0;
const onRow = new Set<(event: Envelope) => void>();

const hub = new Hub({
  frame: take,
  connected: (yes) => {
    if (yes) {
      // the stream of all sessions says nothing of one that is gone
      if (get().lostSince !== null) recheck();
      set({ lostSince: null });
    } else if (get().lostSince === null) set({ lostSince: Date.now() });
  },
  refused: () => set({ loggedOut: true }),
  recheck,
  mayRetry: async () => {
    try {
      await api.me();
      return true;
    } catch (error) {
      return !(error instanceof ApiError && error.status === 401);
    }
  },
});

/** Begin to follow what happens: in all sessions, or only in the shown one. */
export function follow(all: boolean): void {
  hub.begin(all);
}

/** Call back with every durable event that is heard of, of any session; returns how to end it. */
export function listen(heard: (event: Envelope) => void): () => void {
  onRow.add(heard);
  return () => onRow.delete(heard);
}

/** Show a session: read what is stored, then follow. */
export function show(session: string | null): void {
  if (session === get().session && get().phase !== 'failed') return;
  waiting = [];
  set({ session, state: EMPTY, phase: session === null ? 'none' : 'loading' });
  if (session === null) hub.watch(null);
  else void read(session);
}

/** Read the shown session again, after a login or a reset. */
export function reload(): void {
  const { session } = get();
  set({ loggedOut: false, lostSince: null, session: null, phase: 'none' });
  hub.begin();
  show(session);
}

async function read(session: string): Promise<void> {
  const turn = ++reading;
  let state = EMPTY;
  let after = '';
  try {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- a page names the next one
      const page = await api.events(session, after);
      if (turn !== reading) return;
      state = fold(state, page.events as unknown as Row[]);
      if (page.next === null) {
        // the log is read to its head, whoever wrote the last rows
        if (isAfter(page.head, state.cursor)) state = { ...state, cursor: page.head };
        break;
      }
      after = page.next;
    }
  } catch (error) {
    if (turn === reading) fail(error, session);
    return;
  }
  set({ state, phase: 'ready' });
  requestAnimationFrame(() => performance.mark('larkspur.shown'));
  hub.watch({ session, cursor: state.cursor });
}

function recheck(): void {
  const { session } = get();
  if (session === null) return;
  api.session(session).catch((error: unknown) => {
    if (session !== get().session || !(error instanceof ApiError) || error.status !== 404) return;
    set({ phase: 'missing', lostSince: null });
    hub.watch(null);
  });
}

function fail(error: unknown, session: string): void {
  if (error instanceof ApiError && error.status === 401) set({ loggedOut: true, phase: 'failed' });
  else if (error instanceof ApiError && error.status === 404) set({ phase: 'missing' });
  else {
    set({ phase: 'failed', lostSince: get().lostSince ?? Date.now() });
    setTimeout(() => {
      if (get().session === session && get().phase === 'failed') void read(session);
    }, 1_000);
  }
}

function take(frame: Frame): void {
  if (frame.name === 'stream.reset') {
    reload();
    return;
  }
  if (frame.name === 'workflow.stream.dropped') {
    flush();
    const { nodes } = frame.data as { nodes: string[] };
    set({ state: dropped(get().state, nodes) });
    return;
  }
  const event = frame.data as Partial<Envelope>;
  if (event.run_id === undefined) return;
  const row = frame.data as Envelope;
  const durable = row.seq !== undefined;
  if (durable) {
    hub.reached(frame.id);
    for (const heard of onRow) heard(row);
  }
  if (event.session_id !== get().session) return;
  waiting.push({ id: durable ? frame.id : undefined, event: row });
  if (scheduled) return;
  scheduled = true;
  // nothing is painted in a tab that nobody sees
  if (document.hidden) setTimeout(flush, 500);
  else requestAnimationFrame(flush);
}

function flush(): void {
  scheduled = false;
  if (waiting.length === 0 || get().phase !== 'ready') return;
  const rows = waiting;
  waiting = [];
  set({ state: fold(get().state, rows) });
}

document.addEventListener('visibilitychange', flush);
