/**
 * The session shown in this tab: its newest stored events, then live ones once per frame. Earlier
 * events are loaded when they are needed.
 */
import { create } from 'zustand';
import { api, hasStatus } from '../api/client';
import type { Envelope } from '../stream/events';
import { markGaps, reduceEvents } from './event_reducer';
import { EMPTY, isAfterCursor, type Row, type State } from './session_state';
import { SharedStream } from '../stream/shared_stream';
import type { Frame } from '../stream/reconnecting_stream';

export interface SessionStore {
  session: string | null;
  state: State;
  /** Where the events that are not loaded end; null if all are loaded. */
  earlier: string | null;
  /** The session did not fit into one page of events. */
  isLong: boolean;
  /** The last change added earlier events, so that the view keeps its distance to the end. */
  grewAtStart: boolean;
  phase: 'none' | 'loading' | 'ready' | 'missing' | 'failed';
  /** When the connection was lost; null while connected. */
  lostSince: number | null;
  /** A login is required. */
  loggedOut: boolean;
}

export const useSessionStore = create<SessionStore>(() => ({
  session: null,
  state: EMPTY,
  earlier: null,
  isLong: false,
  grewAtStart: false,
  phase: 'none',
  lostSince: null,
  loggedOut: false,
}));

const set = useSessionStore.setState;
const get = useSessionStore.getState;

/** Events that are folded at once, so that a page with many earlier events stays responsive. */
const FOLDED_AT_ONCE = 2_000;

let pending: Row[] = [];
/** The durable events of `state`. */
let loaded: Row[] = [];
let isLoadingEarlier = false;
let scheduled = false;
let lastRequest = 0;
const eventListeners = new Set<(event: Envelope) => void>();

const stream = new SharedStream({
  frame: handleFrame,
  connected: (yes) => {
    if (yes) {
      // the stream of all sessions does not report deleted ones
      if (get().lostSince !== null) checkSession();
      set({ lostSince: null });
    } else if (get().lostSince === null) set({ lostSince: Date.now() });
  },
  rejected: () => set({ loggedOut: true }),
  checkSession,
  mayRetry: async () => {
    try {
      await api.me();
      return true;
    } catch (error) {
      return !hasStatus(error, 401);
    }
  },
});

/** Start the event stream: of all sessions, or of the shown one only. */
export function startStream(all: boolean): void {
  stream.start(all);
}

/** Call `listener` with every durable event of any session, its new title and what becomes of messages to it; return a function that stops this. */
export function subscribe(listener: (event: Envelope) => void): () => void {
  eventListeners.add(listener);
  return () => eventListeners.delete(listener);
}

/** Load the stored events of a session, then follow it. */
export function showSession(session: string | null): void {
  if (session === get().session && get().phase !== 'failed') return;
  pending = [];
  loaded = [];
  const phase = session === null ? 'none' : 'loading';
  set({ session, state: EMPTY, earlier: null, isLong: false, grewAtStart: false, phase });
  if (session === null) stream.watch(null);
  else void loadHistory(session);
}

/** Load the session again, after a login or a reset of the stream. */
export function reloadSession(): void {
  const { session } = get();
  set({ loggedOut: false, lostSince: null, session: null, phase: 'none' });
  stream.start();
  showSession(session);
}

async function loadHistory(session: string): Promise<void> {
  const request = ++lastRequest;
  let page: Awaited<ReturnType<typeof api.events>>;
  try {
    page = await api.events(session, 'end');
  } catch (error) {
    if (request === lastRequest) handleLoadError(error, session);
    return;
  }
  if (request !== lastRequest) return;
  loaded = page.events as unknown as Row[];
  let state = reduceEvents(EMPTY, loaded);
  // continue after all stored events, also those of other sessions
  if (isAfterCursor(page.head, state.cursor)) state = { ...state, cursor: page.head };
  set({ state, earlier: page.previous, isLong: page.previous !== null, phase: 'ready' });
  requestAnimationFrame(() => performance.mark('larkspur.shown'));
  stream.watch({ session, cursor: state.cursor });
}

/** Load as many earlier events again as are loaded, or all. Without effect while that is done. */
export async function loadEarlier(all = false): Promise<void> {
  const request = lastRequest;
  const { session, phase } = get();
  let before = get().earlier;
  if (session === null || phase !== 'ready' || before === null || isLoadingEarlier) return;
  isLoadingEarlier = true;
  try {
    const pages: Row[][] = [];
    const wanted = all ? Infinity : loaded.length;
    for (let count = 0; before !== null && count < wanted;) {
      // oxlint-disable-next-line no-await-in-loop -- a page names the previous one
      const page = await api.events(session, before);
      if (request !== lastRequest) return;
      pages.unshift(page.events as unknown as Row[]);
      count += page.events.length;
      before = page.previous;
    }
    const added = pages.flat();
    let state = EMPTY;
    let folded = 0;
    // live events may be added meanwhile
    for (;;) {
      const rows = [...added, ...loaded].slice(folded, folded + FOLDED_AT_ONCE);
      if (rows.length === 0) break;
      state = reduceEvents(state, rows);
      folded += rows.length;
      // oxlint-disable-next-line no-await-in-loop -- the browser may paint and take input
      await new Promise((done) => setTimeout(done));
      if (request !== lastRequest) return;
    }
    loaded = [...added, ...loaded];
    const { cursor, live } = get().state;
    set({ state: { ...state, cursor, live }, earlier: before, grewAtStart: true });
  } catch (error) {
    if (hasStatus(error, 401)) set({ loggedOut: true });
    // else they are loaded with the next attempt
  } finally {
    isLoadingEarlier = false;
  }
}

function checkSession(): void {
  const { session } = get();
  if (session === null) return;
  api.session(session).catch((error: unknown) => {
    if (session !== get().session || !hasStatus(error, 404)) return;
    set({ phase: 'missing', lostSince: null });
    stream.watch(null);
  });
}

function handleLoadError(error: unknown, session: string): void {
  if (hasStatus(error, 401)) set({ loggedOut: true, phase: 'failed' });
  else if (hasStatus(error, 404)) set({ phase: 'missing' });
  else {
    set({ phase: 'failed', lostSince: get().lostSince ?? Date.now() });
    setTimeout(() => {
      if (get().session === session && get().phase === 'failed') void loadHistory(session);
    }, 1_000);
  }
}

function handleFrame(frame: Frame): void {
  if (frame.name === 'stream.reset') {
    reloadSession();
    return;
  }
  if (frame.name === 'workflow.stream.dropped') {
    flush();
    const { nodes } = frame.data as { nodes: string[] };
    set({ state: markGaps(get().state, nodes) });
    return;
  }
  const event = frame.data as Partial<Envelope>;
  if (event.run_id === undefined) return;
  const row = frame.data as Envelope;
  const durable = row.seq !== undefined;
  if (durable) stream.setCursor(frame.id);
  if (durable || row.event === 'workflow.session.titled' || row.event === 'workflow.input.waiting') {
    for (const listener of eventListeners) listener(row);
  }
  if (event.session_id !== get().session) return;
  pending.push({ id: durable ? frame.id : undefined, event: row });
  if (scheduled) return;
  scheduled = true;
  // hidden tabs do not paint
  if (document.hidden) setTimeout(flush, 500);
  else requestAnimationFrame(flush);
}

function flush(): void {
  scheduled = false;
  if (pending.length === 0 || get().phase !== 'ready') return;
  const rows = pending;
  pending = [];
  loaded.push(...rows.filter((row) => row.id !== undefined && isAfterCursor(row.id, get().state.cursor)));
  set({ state: reduceEvents(get().state, rows), grewAtStart: false });
}

document.addEventListener('visibilitychange', flush);
