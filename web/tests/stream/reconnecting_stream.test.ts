import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { olderCursor } from '../../src/stream/shared_stream';
import { setLoginKey } from '../../src/api/client';
import { ReconnectingStream, type Frame } from '../../src/stream/reconnecting_stream';

/** A request for the stream, which the test answers. */
class Request {
  static opened: Request[] = [];
  readonly headers: Record<string, string>;
  readonly signal: AbortSignal;
  /** Set when the browser has stopped reading. */
  cancelled = false;
  private body!: ReadableStreamDefaultController<Uint8Array>;
  private respond!: (response: Response) => void;
  private refuse!: (error: Error) => void;
  readonly response = new Promise<Response>((resolve, reject) => {
    [this.respond, this.refuse] = [resolve, reject];
  });

  constructor(
    readonly url: string,
    options: RequestInit,
  ) {
    this.headers = options.headers as Record<string, string>;
    this.signal = options.signal as AbortSignal;
    Request.opened.push(this);
    this.signal.addEventListener('abort', () => {
      this.cancelled = true;
      const error = new DOMException('aborted', 'AbortError');
      this.refuse(error);
      this.body?.error(error);
    });
  }

  /** Answer with the next bytes of a stream. */
  write(text: string): void {
    if (this.body === undefined) {
      const body = new ReadableStream<Uint8Array>({ start: (made) => void (this.body = made) });
      this.respond(new Response(body));
    }
    if (!this.cancelled) this.body.enqueue(new TextEncoder().encode(text));
  }

  send(name: string, data: unknown, id = ''): void {
    this.write(`${id && `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** Lose the connection. */
  break(): void {
    if (this.body === undefined) this.refuse(new TypeError('network error'));
    else this.body.error(new TypeError('network error'));
  }

  end(): void {
    this.write('');
    this.body.close();
  }

  reject(status: number): void {
    this.respond(new Response('{"error": {"message": "no"}}', { status }));
  }
}

let frames: Frame[] = [];
let connected: boolean[] = [];
let mayRetry = true;
let stream: ReconnectingStream;

const request = () => Request.opened.at(-1) as Request;
/** Let everything that was sent be read. */
const read = () => vi.advanceTimersByTimeAsync(1);

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('fetch', (url: string, options: RequestInit) => new Request(url, options).response);
  [Request.opened, frames, connected, mayRetry] = [[], [], [], true];
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
  request().send('connected', {});
  request().send('workflow.input.received', { seq: 1 }, 'abcdef-7');
  await read();
  request().break();
  await vi.advanceTimersByTimeAsync(10);
  expect(Request.opened.map((one) => one.url)).toEqual([
    '/api/sse?after=abcdef-1',
    '/api/sse?after=abcdef-7',
  ]);
  expect(connected).toEqual([true, false]);
});

test('retries forever, with delays of up to half a minute', async () => {
  for (let n = 0; n < 20; n += 1) {
    request().break();
    // oxlint-disable-next-line no-await-in-loop -- one failure after the other
    await vi.advanceTimersByTimeAsync(38_000);
    expect(Request.opened).toHaveLength(n + 2);
  }
  request().break();
  await vi.advanceTimersByTimeAsync(15_000);
  expect(Request.opened).toHaveLength(21);
});

test('replaces a silent connection', async () => {
  request().send('connected', {});
  await vi.advanceTimersByTimeAsync(30_000);
  request().send('hb', { t: '', head: '' });
  await vi.advanceTimersByTimeAsync(38_000);
  expect(Request.opened).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(Request.opened).toHaveLength(2);
});

test('reconnects at once when the page becomes visible or the network returns', async () => {
  for (let n = 0; n < 6; n += 1) {
    request().break();
    // oxlint-disable-next-line no-await-in-loop -- one failure after the other
    await vi.advanceTimersByTimeAsync(38_000);
  }
  request().break();
  await vi.advanceTimersByTimeAsync(1);
  const before = Request.opened.length;
  dispatchEvent(new Event('online'));
  await vi.advanceTimersByTimeAsync(1);
  expect(Request.opened).toHaveLength(before + 1);
});

test('reconnects after the delay given by the server', async () => {
  request().send('bye', { retry: 2000 });
  await vi.advanceTimersByTimeAsync(1_900);
  expect(Request.opened).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(Request.opened).toHaveLength(2);
});

test('stops only when it is rejected permanently', async () => {
  request().reject(401);
  await vi.advanceTimersByTimeAsync(10);
  expect(Request.opened).toHaveLength(2);
  mayRetry = false;
  request().reject(401);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(Request.opened).toHaveLength(2);
});

test('drops its cursor on a reset and ignores closed connections', async () => {
  request().send('stream.reset', { reason: 'gone', earliest: '', head: '' });
  await read();
  expect(stream.cursor).toBe('');
  const left = request();
  left.send('bye', { retry: 0 });
  left.send('workflow.input.received', { seq: 1 }, 'abcdef-9');
  await vi.advanceTimersByTimeAsync(10);
  expect(frames.map((frame) => frame.name)).toEqual(['stream.reset', 'bye']);
  expect(stream.cursor).toBe('');
  expect(Request.opened).toHaveLength(2);
  expect(left.cancelled).toBe(true);
});

test('an event that cannot be handled is reported, and the next ones are handled', async () => {
  const reported = vi.fn<(error: unknown) => void>();
  vi.stubGlobal('reportError', reported);
  request().write('event: hb\ndata: {\n\n');
  request().send('hb', {}, 'abcdef-8');
  await read();
  expect(reported).toHaveBeenCalledOnce();
  expect(frames.map((frame) => frame.name)).toEqual(['hb']);
  expect(Request.opened).toHaveLength(1);
});

test('sends the login key that is stored at that time', async () => {
  setLoginKey('first');
  request().break();
  await vi.advanceTimersByTimeAsync(10);
  expect(request().headers['x-larkspur-login-key']).toBe('first');
  localStorage.clear();
  setLoginKey(null);
  request().break();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(request().headers['x-larkspur-login-key']).toBe('');
});

test('a closed stream has ended its request, before and after the response', async () => {
  request().send('connected', {});
  await read();
  stream.close();
  expect(request().cancelled).toBe(true);
  dispatchEvent(new Event('online'));
  await vi.advanceTimersByTimeAsync(120_000);
  expect(Request.opened).toHaveLength(1);
  expect(connected).toEqual([true]);
});

test('reconnects when the response ends', async () => {
  request().send('connected', {});
  request().end();
  await vi.advanceTimersByTimeAsync(10);
  expect(Request.opened).toHaveLength(2);
  expect(connected).toEqual([true, false]);
});

test('the older of two cursors is where a stream starts', () => {
  expect(olderCursor('abcdef-10', 'abcdef-9')).toBe('abcdef-9');
  expect(olderCursor('', 'abcdef-9')).toBe('abcdef-9');
  expect(olderCursor('abcdef-9', '')).toBe('abcdef-9');
  expect(olderCursor('fedcba-1', 'abcdef-9')).toBe('abcdef-9');
});
