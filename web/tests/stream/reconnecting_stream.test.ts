import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { olderCursor } from '../../src/stream/shared_stream';
import { ReconnectingStream, type Frame } from '../../src/stream/reconnecting_stream';

/** An EventSource whose server is the test. */
class Source extends EventTarget {
  static readonly CLOSED = 2;
  static opened: Source[] = [];
  readyState = 1;
  constructor(readonly url: string) {
    super();
    Source.opened.push(this);
  }
  close(): void {
    this.readyState = 2;
  }
  send(name: string, data: unknown, lastEventId = ''): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data), lastEventId }));
  }
  break(readyState: number): void {
    this.readyState = readyState;
    this.dispatchEvent(new Event('error'));
  }
}

let frames: Frame[] = [];
let connected: boolean[] = [];
let mayRetry = true;
let stream: ReconnectingStream;

const source = () => Source.opened.at(-1) as Source;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('EventSource', Source);
  [Source.opened, frames, connected, mayRetry] = [[], [], [], true];
  stream = new ReconnectingStream(
    (cursor) => `/api/sse?after=${cursor}`,
    {
      frame: (frame) => frames.push(frame),
      connected: (yes) => connected.push(yes),
      rejected: async () => mayRetry,
    },
    'abcdef-1',
  );
});

afterEach(() => {
  stream.close();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test('reconnects at once with its cursor after the first failure', async () => {
  source().send('connected', {});
  source().send('workflow.input.received', { seq: 1 }, 'abcdef-7');
  source().break(0);
  await vi.advanceTimersByTimeAsync(10);
  expect(Source.opened.map((one) => one.url)).toEqual([
    '/api/sse?after=abcdef-1',
    '/api/sse?after=abcdef-7',
  ]);
  expect(connected).toEqual([true, false]);
});

test('retries forever, with delays of up to half a minute', async () => {
  for (let n = 0; n < 20; n += 1) {
    source().break(0);
    // oxlint-disable-next-line no-await-in-loop -- one failure after the other
    await vi.advanceTimersByTimeAsync(38_000);
    expect(Source.opened).toHaveLength(n + 2);
  }
  source().break(0);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(Source.opened).toHaveLength(21);
});

test('replaces a silent connection', async () => {
  source().send('connected', {});
  await vi.advanceTimersByTimeAsync(30_000);
  source().send('hb', { t: '', head: '' });
  await vi.advanceTimersByTimeAsync(38_000);
  expect(Source.opened).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(Source.opened).toHaveLength(2);
});

test('reconnects at once when the page becomes visible or the network returns', async () => {
  for (let n = 0; n < 6; n += 1) {
    source().break(0);
    // oxlint-disable-next-line no-await-in-loop -- one failure after the other
    await vi.advanceTimersByTimeAsync(38_000);
  }
  source().break(0);
  await vi.advanceTimersByTimeAsync(1);
  const before = Source.opened.length;
  dispatchEvent(new Event('online'));
  await vi.advanceTimersByTimeAsync(1);
  expect(Source.opened).toHaveLength(before + 1);
});

test('reconnects after the delay given by the server', async () => {
  source().send('bye', { retry: 2000 });
  await vi.advanceTimersByTimeAsync(1_900);
  expect(Source.opened).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(Source.opened).toHaveLength(2);
});

test('stops only when it is rejected permanently', async () => {
  source().break(Source.CLOSED);
  await vi.advanceTimersByTimeAsync(10);
  expect(Source.opened).toHaveLength(2);
  mayRetry = false;
  source().break(Source.CLOSED);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(Source.opened).toHaveLength(2);
});

test('drops its cursor on a reset and ignores closed sources', async () => {
  source().send('stream.reset', { reason: 'gone', earliest: '', head: '' });
  expect(stream.cursor).toBe('');
  const left = source();
  left.break(0);
  await vi.advanceTimersByTimeAsync(10);
  left.send('workflow.input.received', { seq: 1 }, 'abcdef-9');
  expect(frames.map((frame) => frame.name)).toEqual(['stream.reset']);
});

test('an invalid frame is ignored', () => {
  source().dispatchEvent(new MessageEvent('hb', { data: '{' }));
  expect(frames).toEqual([]);
});

test('the older of two cursors is where a stream starts', () => {
  expect(olderCursor('abcdef-10', 'abcdef-9')).toBe('abcdef-9');
  expect(olderCursor('', 'abcdef-9')).toBe('abcdef-9');
  expect(olderCursor('abcdef-9', '')).toBe('abcdef-9');
  expect(olderCursor('fedcba-1', 'abcdef-9')).toBe('abcdef-9');
});
