/**
 * An event stream that reconnects forever: with its own cursor, watchdog and backoff.
 *
 * The browser's EventSource is not used: it cannot send the login key, does not detect dead
 * connections and does not reconnect at once when the machine wakes up.
 */
import { ApiError, send } from '../api/client';
import { eventParser, type ServerEvent } from './event_parser';

export interface Frame {
  name: string;
  /** The ID of the newest durable event; frames of ephemeral events repeat it. */
  id: string;
  data: unknown;
}

export interface StreamHandlers {
  frame: (frame: Frame) => void;
  /** Called with false when the connection is lost, and with true when it is restored. */
  connected: (yes: boolean) => void;
  /** The stream was rejected. Resolves to false if a retry is pointless. */
  rejected: () => Promise<boolean>;
}

/** The server sends a heartbeat every 15 s. */
const SILENCE_TIMEOUT_MS = 40_000;
const MAX_RETRY_MS = 30_000;

export class ReconnectingStream {
  /** Ends the open connection; null while there is none. */
  private connection: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private watchdog: ReturnType<typeof setInterval> | undefined;
  private lastFrameAt = 0;
  private failures = 0;
  private closed = false;

  constructor(
    private readonly address: (cursor: string) => string,
    private readonly events: StreamHandlers,
    public cursor: string,
  ) {
    this.watchdog = setInterval(this.checkSilence, 5_000);
    document.addEventListener('visibilitychange', this.reconnectIfVisible);
    addEventListener('pageshow', this.reconnectIfVisible);
    addEventListener('online', this.reconnectNow);
    void this.open();
  }

  close(): void {
    this.closed = true;
    clearInterval(this.watchdog);
    clearTimeout(this.timer);
    document.removeEventListener('visibilitychange', this.reconnectIfVisible);
    removeEventListener('pageshow', this.reconnectIfVisible);
    removeEventListener('online', this.reconnectNow);
    this.disconnect();
  }

  private async open(): Promise<void> {
    this.disconnect();
    this.lastFrameAt = Date.now();
    const connection = new AbortController();
    const { signal } = connection;
    this.connection = connection;
    const parse = eventParser((event) => {
      try {
        if (!signal.aborted) this.handle(event);
      } catch (error) {
        reportError(error); // the next events are handled
      }
    });
    let rejected = false;
    try {
      const { body } = await send(this.address(this.cursor), { signal });
      await readText(body, parse);
    } catch (error) {
      rejected = error instanceof ApiError && error.status > 0;
    }
    if (!signal.aborted) void this.fail(rejected);
  }

  private handle(event: ServerEvent): void {
    const { name, id } = event;
    this.lastFrameAt = Date.now();
    if (id !== '') this.cursor = id;
    const data: unknown = JSON.parse(event.data);
    if (name === 'connected') {
      this.failures = 0;
      this.events.connected(true);
    }
    if (name === 'stream.reset') this.cursor = '';
    this.events.frame({ name, id, data });
    if (name === 'bye') this.retry((data as { retry: number }).retry);
  }

  private async fail(rejected: boolean): Promise<void> {
    this.disconnect();
    this.events.connected(false);
    // proxies reject requests while the server is down, so only the server's answer ends retries
    if (rejected && !(await this.events.rejected())) this.close();
    if (this.closed) return;
    const wait = this.failures === 0 ? 0 : Math.min(MAX_RETRY_MS, 250 * 2 ** this.failures);
    this.failures += 1;
    this.retry(wait * (0.75 + Math.random() / 2));
  }

  private retry(wait: number): void {
    this.disconnect();
    clearTimeout(this.timer);
    if (!this.closed) this.timer = setTimeout(() => void this.open(), wait);
  }

  private disconnect(): void {
    this.connection?.abort();
    this.connection = null;
  }

  private readonly checkSilence = (): void => {
    if (this.connection !== null && Date.now() - this.lastFrameAt > SILENCE_TIMEOUT_MS) void this.fail(false);
  };

  private readonly reconnectIfVisible = (): void => {
    if (document.visibilityState !== 'visible') return;
    if (this.connection === null) this.reconnectNow();
    else this.checkSilence();
  };

  private readonly reconnectNow = (): void => {
    if (this.connection === null) this.retry(0);
  };
}

async function readText(body: ReadableStream<BufferSource> | null, take: (text: string) => void): Promise<void> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one piece after the other
    const { done, value } = await reader.read();
    if (done) return;
    take(value);
  }
}
