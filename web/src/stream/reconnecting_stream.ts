/**
 * An EventSource that reconnects forever: with its own cursor, watchdog and backoff.
 *
 * The browser's reconnection is not used, as it neither detects dead connections nor reconnects at
 * once when the machine wakes up.
 */
import { CONTROL_NAMES, EVENT_NAMES } from './events';

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
  private source: EventSource | null = null;
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
    this.open();
  }

  close(): void {
    this.closed = true;
    clearInterval(this.watchdog);
    clearTimeout(this.timer);
    document.removeEventListener('visibilitychange', this.reconnectIfVisible);
    removeEventListener('pageshow', this.reconnectIfVisible);
    removeEventListener('online', this.reconnectNow);
    this.closeSource();
  }

  private open(): void {
    this.closeSource();
    this.lastFrameAt = Date.now();
    const source = new EventSource(this.address(this.cursor));
    this.source = source;
    for (const name of [...EVENT_NAMES, ...CONTROL_NAMES]) {
      source.addEventListener(name, (event) => this.handle(source, name, event));
    }
    source.addEventListener('error', () => {
      if (source === this.source) void this.fail(source.readyState === EventSource.CLOSED);
    });
  }

  private handle(source: EventSource, name: string, event: MessageEvent<string>): void {
    if (source !== this.source) return;
    this.lastFrameAt = Date.now();
    if (event.lastEventId !== '') this.cursor = event.lastEventId;
    let data: unknown;
    try {
      data = JSON.parse(event.data);
    } catch {
      return; // a frame that was cut: what it held comes again behind the cursor
    }
    if (name === 'connected') {
      this.failures = 0;
      this.events.connected(true);
    }
    if (name === 'stream.reset') this.cursor = '';
    this.events.frame({ name, id: event.lastEventId, data });
    if (name === 'bye') this.retry((data as { retry: number }).retry);
  }

  private async fail(rejected: boolean): Promise<void> {
    this.closeSource();
    this.events.connected(false);
    // proxies reject requests while the server is down, so only the server's answer ends retries
    if (rejected && !(await this.events.rejected())) this.close();
    if (this.closed) return;
    const wait = this.failures === 0 ? 0 : Math.min(MAX_RETRY_MS, 250 * 2 ** this.failures);
    this.failures += 1;
    this.retry(wait * (0.75 + Math.random() / 2));
  }

  private retry(wait: number): void {
    this.closeSource();
    clearTimeout(this.timer);
    if (!this.closed) this.timer = setTimeout(() => this.open(), wait);
  }

  private closeSource(): void {
    this.source?.close();
    this.source = null;
  }

  private readonly checkSilence = (): void => {
    if (this.source !== null && Date.now() - this.lastFrameAt > SILENCE_TIMEOUT_MS) void this.fail(false);
  };

  private readonly reconnectIfVisible = (): void => {
    if (document.visibilityState !== 'visible') return;
    if (this.source === null) this.reconnectNow();
    else this.checkSilence();
  };

  private readonly reconnectNow = (): void => {
    if (this.source === null) this.retry(0);
  };
}
