/**
 * The session shown in this tab: its newest stored events, then live ones once per frame. Earlier
 * events are loaded when they are needed.
 */
import type { StoreApi } from 'zustand';
import type { Frame } from '../stream/reconnecting_stream';
import type { Envelope } from '../stream/events';
import { markGaps, reduceEvents } from './event_reducer';
import { EMPTY, isAfterCursor, type Row, type State } from './session_state';

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

/** A page of stored events. `previous` is where the page before it ends, null for the first one. */
export interface EventPage {
  events: readonly Row[];
  previous: string | null;
  /** The cursor after all stored events, also those of other sessions. */
  head: string;
}

/** Where events come from. */
export interface EventSource {
  /** Read the page of a session that ends before a cursor, or at its `end`. */
  read: (session: string, before: string) => Promise<EventPage>;
  /** Follow a session from a cursor; null follows none. */
  follow: (place: { session: string; cursor: string } | null) => void;
  /** Record how far the stream was read. */
  setCursor: (cursor: string) => void;
  /** Start the stream again after it was rejected. */
  restart: () => void;
  /** Reject if a session cannot be read. */
  check: (session: string) => Promise<unknown>;
  /** Return the HTTP status of a failed request, 0 without an answer. */
  statusOf: (error: unknown) => number;
}

/** Events that are folded at once, so that a page with many earlier events stays responsive. */
const FOLDED_AT_ONCE = 2_000;
const RETRY_MS = 1_000;
const HIDDEN_DELAY_MS = 500;
const LISTENED = new Set(['workflow.session.titled', 'workflow.input.waiting']);

export class SessionFeed {
  /** Events that wait for the next frame. */
  private pending: Row[] = [];
  /** The durable events of the shown state. */
  private loaded: Row[] = [];
  private isLoadingEarlier = false;
  private isScheduled = false;
  private lastRequest = 0;
  private readonly listeners = new Set<(event: Envelope) => void>();

  constructor(
    private readonly store: StoreApi<SessionStore>,
    private readonly source: EventSource,
  ) {}

  /** Call `listener` with every durable event of any session, its new title and what becomes of messages to it; return a function that stops this. */
  subscribe(listener: (event: Envelope) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Load the stored events of a session, then follow it. */
  show(session: string | null): void {
    const { session: shown, phase: before } = this.store.getState();
    if (session === shown && before !== 'failed') return;
    this.lastRequest += 1; // a page of another session that is being read is of no use any more
    this.pending = [];
    this.loaded = [];
    const phase = session === null ? 'none' : 'loading';
    this.store.setState({ session, state: EMPTY, earlier: null, isLong: false, grewAtStart: false, phase });
    if (session === null) this.source.follow(null);
    else void this.load(session);
  }

  /** Load the session again, after a login or a reset of the stream. */
  reload(): void {
    const { session } = this.store.getState();
    this.store.setState({ loggedOut: false, lostSince: null, session: null, phase: 'none' });
    this.source.restart();
    this.show(session);
  }

  /** Load as many earlier events again as are loaded, or all. Without effect while that is done. */
  async loadEarlier(all = false): Promise<void> {
    const request = this.lastRequest;
    const { session, phase, earlier } = this.store.getState();
    if (session === null || phase !== 'ready' || earlier === null || this.isLoadingEarlier) return;
    this.isLoadingEarlier = true;
    try {
      const wanted = all ? Infinity : this.loaded.length;
      const added = await this.readBefore(session, earlier, wanted);
      if (added !== null) await this.prepend(added.rows, added.before, request);
    } catch (error) {
      if (this.source.statusOf(error) === 401) this.store.setState({ loggedOut: true });
      // else they are loaded with the next attempt
    } finally {
      this.isLoadingEarlier = false;
    }
  }

  /** Take a frame of the stream. */
  handle(frame: Frame): void {
    if (frame.name === 'stream.reset') {
      this.reload();
      return;
    }
    if (frame.name === 'workflow.stream.dropped') {
      this.flush();
      const { nodes } = frame.data as { nodes: string[] };
      this.store.setState(({ state }) => ({ state: markGaps(state, nodes) }));
      return;
    }
    const event = frame.data as Partial<Envelope>;
    if (event.run_id === undefined) return;
    const row = frame.data as Envelope;
    const durable = row.seq !== undefined;
    if (durable) this.source.setCursor(frame.id);
    if (durable || LISTENED.has(row.event)) {
      for (const listener of this.listeners) listener(row);
    }
    if (event.session_id !== this.store.getState().session) return;
    this.pending.push({ id: durable ? frame.id : undefined, event: row });
    this.schedule();
  }

  /** Show the events that wait. */
  flush(): void {
    this.isScheduled = false;
    if (this.pending.length === 0 || this.store.getState().phase !== 'ready') return;
    const rows = this.pending;
    const { state } = this.store.getState();
    this.pending = [];
    this.loaded.push(...rows.filter((row) => row.id !== undefined && isAfterCursor(row.id, state.cursor)));
    this.store.setState({ state: reduceEvents(state, rows), grewAtStart: false });
  }

  /** Show whether the stream is connected. The stream of all sessions does not report deleted ones. */
  setConnected(isConnected: boolean): void {
    const { lostSince } = this.store.getState();
    if (isConnected && lostSince !== null) this.check();
    if (isConnected) this.store.setState({ lostSince: null });
    else if (lostSince === null) this.store.setState({ lostSince: Date.now() });
  }

  /** Find out whether the session still exists. */
  check(): void {
    const { session } = this.store.getState();
    if (session === null) return;
    this.source.check(session).catch((error: unknown) => {
      if (session !== this.store.getState().session || this.source.statusOf(error) !== 404) return;
      this.store.setState({ phase: 'missing', lostSince: null });
      this.source.follow(null);
    });
  }

  private async load(session: string): Promise<void> {
    const request = ++this.lastRequest;
    let page: EventPage;
    try {
      page = await this.source.read(session, 'end');
    } catch (error) {
      if (request === this.lastRequest) this.handleFailure(error, session);
      return;
    }
    if (request !== this.lastRequest) return;
    this.loaded = [...page.events];
    let state = reduceEvents(EMPTY, this.loaded);
    // continue after all stored events, also those of other sessions
    if (isAfterCursor(page.head, state.cursor)) state = { ...state, cursor: page.head };
    this.store.setState({ state, earlier: page.previous, isLong: page.previous !== null, phase: 'ready' });
    requestAnimationFrame(() => performance.mark('larkspur.shown'));
    this.source.follow({ session, cursor: state.cursor });
  }

  /** Return at least `wanted` events before a place, null if another session is shown meanwhile. */
  private async readBefore(
    session: string,
    place: string,
    wanted: number,
  ): Promise<{ rows: Row[]; before: string | null } | null> {
    const request = this.lastRequest;
    const pages: (readonly Row[])[] = [];
    let before: string | null = place;
    for (let count = 0; before !== null && count < wanted;) {
      // oxlint-disable-next-line no-await-in-loop -- a page names the previous one
      const page = await this.source.read(session, before);
      if (request !== this.lastRequest) return null;
      pages.unshift(page.events);
      count += page.events.length;
      before = page.previous;
    }
    return { rows: pages.flat(), before };
  }

  private async prepend(added: readonly Row[], before: string | null, request: number): Promise<void> {
    let state = EMPTY;
    let folded = 0;
    // live events may be added meanwhile
    for (;;) {
      const rows = [...added, ...this.loaded].slice(folded, folded + FOLDED_AT_ONCE);
      if (rows.length === 0) break;
      state = reduceEvents(state, rows);
      folded += rows.length;
      // oxlint-disable-next-line no-await-in-loop -- the browser may paint and take input
      await new Promise((done) => setTimeout(done));
      if (request !== this.lastRequest) return;
    }
    this.loaded = [...added, ...this.loaded];
    const { cursor, live } = this.store.getState().state;
    this.store.setState({ state: { ...state, cursor, live }, earlier: before, grewAtStart: true });
  }

  private handleFailure(error: unknown, session: string): void {
    const status = this.source.statusOf(error);
    if (status === 401) this.store.setState({ loggedOut: true, phase: 'failed' });
    else if (status === 404) this.store.setState({ phase: 'missing' });
    else {
      this.store.setState(({ lostSince }) => ({ phase: 'failed', lostSince: lostSince ?? Date.now() }));
      setTimeout(() => {
        const now = this.store.getState();
        if (now.session === session && now.phase === 'failed') void this.load(session);
      }, RETRY_MS);
    }
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    const flush = () => this.flush();
    // hidden tabs do not paint
    if (document.hidden) setTimeout(flush, HIDDEN_DELAY_MS);
    else requestAnimationFrame(flush);
  }
}
