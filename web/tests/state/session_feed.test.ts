import { expect, test, vi } from 'vitest';
import { create } from 'zustand';
import { SessionFeed, type EventPage, type SessionStore } from '../../src/state/session_feed';
import { EMPTY, type Row } from '../../src/state/session_state';
import { Log } from '../envelopes';

const SESSION = 'session-1';

/** A log of one session, read in pages of two events, which a test can let wait or fail. */
class Source {
  readonly log = new Log();
  rows: Row[] = [];
  follows: unknown[] = [];
  restarts = 0;
  failure = 0;
  wait: Promise<void> = Promise.resolve();

  add(text: string): Row {
    const row = this.log.durable(`run-${this.rows.length}`, 'workflow.input.received', { task: text } as never);
    this.rows.push(row);
    return row;
  }

  read = async (_session: string, before: string): Promise<EventPage> => {
    const { failure } = this;
    await this.wait;
    if (failure !== 0) throw new Error(String(failure));
    const found = this.rows.findIndex((row) => row.id === before);
    const end = found < 0 ? this.rows.length : found;
    const start = Math.max(0, end - 2);
    const previous = start === 0 ? null : (this.rows[start]?.id ?? null);
    return { events: this.rows.slice(start, end), previous, head: this.rows.at(-1)?.id ?? 'abcdef-0' };
  };
  follow = (place: unknown): void => void this.follows.push(place);
  setCursor = (): void => {};
  restart = (): void => void (this.restarts += 1);
  check = async (): Promise<void> => {
    if (this.failure !== 0) throw new Error(String(this.failure));
  };
  statusOf = (error: unknown): number => Number((error as Error).message);
}

function opened() {
  const store = create<SessionStore>(() => ({
    session: null,
    state: EMPTY,
    earlier: null,
    isLong: false,
    grewAtStart: false,
    phase: 'none',
    lostSince: null,
    loggedOut: false,
  }));
  const source = new Source();
  for (const text of ['one', 'two', 'three', 'four', 'five']) source.add(text);
  const feed = new SessionFeed(store, source);
  const texts = () => store.getState().state.thread.lines.flatMap((line) => (line.kind === 'input' ? [line.text] : []));
  const receive = (row: Row) => feed.handle({ name: 'message', id: row.id ?? '', data: row.event } as never);
  return { store, source, feed, texts, receive };
}

async function shown({ feed, store }: ReturnType<typeof opened>): Promise<void> {
  feed.show(SESSION);
  await vi.waitFor(() => expect(store.getState().phase).toBe('ready'));
}

test('the newest page is shown and followed from the end of the log', async () => {
  const all = opened();
  await shown(all);
  expect(all.texts()).toEqual(['four', 'five']);
  expect(all.store.getState().isLong).toBe(true);
  expect(all.source.follows).toEqual([{ session: SESSION, cursor: 'abcdef-5' }]);
});

test('earlier pages are put before, with what came meanwhile after', async () => {
  const all = opened();
  await shown(all);
  const loading = all.feed.loadEarlier();
  all.receive(all.source.add('six'));
  all.feed.flush();
  await loading;
  expect(all.texts()).toEqual(['two', 'three', 'four', 'five', 'six']);
  await all.feed.loadEarlier(true);
  expect(all.texts()).toEqual(['one', 'two', 'three', 'four', 'five', 'six']);
  expect(all.store.getState().earlier).toBeNull();
});

test('an event is shown once, and one of another session is for listeners only', async () => {
  const all = opened();
  await shown(all);
  const heard: string[] = [];
  const stop = all.feed.subscribe((event) => heard.push(event.session_id));
  const six = all.source.add('six');
  all.receive(six);
  all.receive(six);
  const other = all.source.log.durable('run-x', 'workflow.input.received', { task: 'x' } as never, { session_id: 'other' });
  all.receive(other);
  stop();
  all.receive(all.source.add('seven'));
  all.feed.flush();
  expect(all.texts()).toEqual(['four', 'five', 'six', 'seven']);
  expect(heard).toEqual([SESSION, SESSION, 'other']);
});

test('a page that arrives after another session was chosen is dropped', async () => {
  const all = opened();
  let release: () => void = vi.fn<() => void>();
  all.source.wait = new Promise((done) => (release = () => done()));
  all.feed.show(SESSION);
  all.feed.show(null);
  release();
  await all.source.wait;
  await Promise.resolve();
  expect(all.texts()).toEqual([]);
  expect(all.store.getState().phase).toBe('none');
});

test.each([
  [401, { phase: 'failed', loggedOut: true }],
  [404, { phase: 'missing', loggedOut: false }],
])('a refusal with %i is shown', async (status, expected) => {
  const all = opened();
  all.source.failure = status;
  all.feed.show(SESSION);
  await vi.waitFor(() => expect(all.store.getState()).toMatchObject(expected));
});

test('a page that cannot be read is read again', async () => {
  const all = opened();
  all.source.failure = 503;
  all.feed.show(SESSION);
  await vi.waitFor(() => expect(all.store.getState().phase).toBe('failed'));
  expect(all.store.getState().lostSince).not.toBeNull();
  all.source.failure = 0;
  await vi.waitFor(() => expect(all.texts()).toEqual(['four', 'five']), 5_000);
});

test('a reset of the stream loads the session again', async () => {
  const all = opened();
  await shown(all);
  all.source.add('six');
  all.feed.handle({ name: 'stream.reset', id: '', data: {} } as never);
  await vi.waitFor(() => expect(all.texts()).toEqual(['five', 'six']));
  expect(all.source.restarts).toBe(1);
});

test('a session that was deleted while the connection was lost is missing', async () => {
  const all = opened();
  await shown(all);
  all.feed.setConnected(false);
  all.source.failure = 404;
  all.feed.setConnected(true);
  await vi.waitFor(() => expect(all.store.getState().phase).toBe('missing'));
  expect(all.source.follows.at(-1)).toBeNull();
});
