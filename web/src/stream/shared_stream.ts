/**
 * One event stream per browser: the leader tab reads it and broadcasts it to the others.
 *
 * A tab reports the session it shows and its cursor. The leader reopens the stream from the oldest
 * cursor, so that a new tab also receives the reply that is being streamed. The owner's stream covers
 * all sessions, so that every open question is known at once.
 */
import { sharedName } from '../api/address';
import type { Envelope } from './events';
import { ReconnectingStream, type Frame } from './reconnecting_stream';

interface Subscription {
  session: string;
  cursor: string;
}

type Message =
  | { kind: 'frame'; frame: Frame }
  | { kind: 'connected'; yes: boolean }
  | { kind: 'rejected' }
  | { kind: 'checkSession' }
  | { kind: 'announce' }
  | { kind: 'subscribe'; tab: string; subscription: Subscription | null };

export interface SharedStreamHandlers {
  frame: (frame: Frame) => void;
  connected: (yes: boolean) => void;
  /** The stream was rejected; it stays closed until `start` is called. */
  rejected: () => void;
  /** The stream was rejected and is retried; a session may have been deleted. */
  checkSession: () => void;
  /** Return false if the credentials are no longer valid. */
  mayRetry: () => Promise<boolean>;
}

const NAME = sharedName('larkspur.stream');
/** After this time without a message the leader is stuck, and a visible tab takes over. */
const SILENCE_TIMEOUT_MS = 45_000;

export class SharedStream {
  private readonly tab = randomId();
  private readonly channel = new BroadcastChannel(NAME);
  private readonly subscriptions = new Map<string, Subscription>();
  private stream: ReconnectingStream | null = null;
  private watched = '';
  private isLeader = false;
  /** Without Web Locks (plain HTTP from another host) every tab has its own stream. */
  private hasNoLocks = false;
  private subscription: Subscription | null = null;
  /** Whether all sessions may be watched; null until known, and no stream is opened before. */
  private all: boolean | null = null;
  private lastMessageAt = Date.now();

  constructor(private readonly events: SharedStreamHandlers) {
    this.channel.addEventListener('message', (message: MessageEvent<Message>) => {
      this.handle(message.data);
    });
    addEventListener('pagehide', () => this.post({ kind: 'subscribe', tab: this.tab, subscription: null }));
    addEventListener('pageshow', (event) => {
      if (event.persisted) this.post({ kind: 'subscribe', tab: this.tab, subscription: this.subscription });
    });
    document.addEventListener('visibilitychange', this.takeOverIfSilent);
    setInterval(this.takeOverIfSilent, 15_000);
    if (navigator.locks === undefined) {
      this.hasNoLocks = true;
      this.isLeader = true;
      return;
    }
    // a tab is alive as long as it holds its own lock
    void navigator.locks.request(`${NAME}.${this.tab}`, () => new Promise(() => {}));
    void this.requestLead({});
  }

  /** Start the stream, or restart it after it was rejected: of all sessions, or of those shown. */
  start(all: boolean | null = this.all): void {
    this.all = all;
    if (this.isLeader) void this.open(null);
  }

  /** Follow a session from a cursor; null follows none. */
  watch(subscription: Subscription | null): void {
    this.subscription = subscription;
    this.lastMessageAt = Date.now();
    const message: Message = { kind: 'subscribe', tab: this.tab, subscription };
    if (this.isLeader) this.handle(message);
    else this.post(message);
  }

  /** Record how far this tab has read, where a new leader continues. */
  setCursor(cursor: string): void {
    if (this.subscription !== null) this.subscription = { ...this.subscription, cursor };
  }

  private async requestLead(options: LockOptions): Promise<void> {
    try {
      await navigator.locks.request(NAME, options, () => {
        this.isLeader = true;
        this.post({ kind: 'announce' });
        if (this.subscription !== null) this.subscriptions.set(this.tab, this.subscription);
        void this.open();
        return new Promise(() => {});
      });
    } catch {
      // another tab became the leader
      this.isLeader = false;
      this.stream?.close();
      this.stream = null;
      this.subscriptions.clear();
      void this.requestLead({});
    }
  }

  private post(message: Message): void {
    if (!this.hasNoLocks) this.channel.postMessage(message);
  }

  private handle(message: Message): void {
    switch (message.kind) {
      case 'frame':
        this.lastMessageAt = Date.now();
        this.events.frame(message.frame);
        return;
      case 'connected':
        this.lastMessageAt = Date.now();
        this.events.connected(message.yes);
        return;
      case 'rejected':
        this.events.rejected();
        return;
      case 'checkSession':
        this.events.checkSession();
        return;
      case 'announce':
        this.post({ kind: 'subscribe', tab: this.tab, subscription: this.subscription });
        return;
      case 'subscribe':
        if (!this.isLeader) return;
        if (message.subscription === null) this.subscriptions.delete(message.tab);
        else this.subscriptions.set(message.tab, message.subscription);
        void this.open(message.subscription);
        return;
    }
  }

  private broadcast(message: Message): void {
    this.post(message);
    this.handle(message);
  }

  /** Open the stream for all subscriptions; a subscription that ended needs no new one. */
  private async open(subscription: Subscription | null = this.subscription): Promise<void> {
    await this.removeClosedTabs();
    if (!this.isLeader || this.all === null) return;
    const shown = [...new Set([...this.subscriptions.values()].map((one) => one.session))].toSorted();
    const sessions = this.all ? '*' : shown.join(',');
    if (subscription === null && sessions === this.watched) return;
    const added = subscription === null ? [] : [subscription];
    const read = this.stream === null ? [...this.subscriptions.values()] : added;
    const cursor = read.reduce((one, { cursor: other }) => olderCursor(one, other), this.stream?.cursor ?? '');
    this.watched = sessions;
    this.stream?.close();
    this.stream = null;
    if (sessions === '') return;
    this.stream = new ReconnectingStream(
      (after) => {
        const where = after === '' ? 'replay=none' : `after=${encodeURIComponent(after)}`;
        return `/api/sse?sessions=${encodeURIComponent(sessions)}&${where}`;
      },
      {
        frame: (frame) => {
          if (this.isWanted(frame)) this.broadcast({ kind: 'frame', frame });
        },
        connected: (yes) => this.broadcast({ kind: 'connected', yes }),
        rejected: async () => {
          const again = await this.events.mayRetry();
          if (!again) this.watched = '';
          this.broadcast({ kind: again ? 'checkSession' : 'rejected' });
          return again;
        },
      },
      cursor,
    );
  }

  /** Ephemeral events are for the tabs that show their session, all others for every tab. */
  private isWanted(frame: Frame): boolean {
    const { session_id: session, run_id: run, seq } = frame.data as Partial<Envelope>;
    if (run === undefined || seq !== undefined) return true;
    return [...this.subscriptions.values()].some((one) => one.session === session);
  }

  /** Remove the subscriptions of closed tabs. */
  private async removeClosedTabs(): Promise<void> {
    if (this.hasNoLocks) return;
    const { held = [] } = await navigator.locks.query();
    const alive = new Set(held.map((lock) => lock.name?.slice(NAME.length + 1)));
    for (const tab of this.subscriptions.keys()) {
      if (tab !== this.tab && !alive.has(tab)) this.subscriptions.delete(tab);
    }
  }

  private readonly takeOverIfSilent = (): void => {
    const isSilent = Date.now() - this.lastMessageAt > SILENCE_TIMEOUT_MS;
    const isNeeded = this.all === true || this.subscription !== null;
    if (this.isLeader || !isNeeded || !isSilent || document.visibilityState !== 'visible') return;
    this.lastMessageAt = Date.now();
    void this.requestLead({ steal: true });
  };
}

/** Return a random ID; `crypto.randomUUID` is not available over plain HTTP. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Return the older of two cursors; an empty one is ignored, cursors of different logs reset. */
export function olderCursor(one: string, other: string): string {
  if (one === '' || other === '') return one || other;
  const [epoch, position] = [one.slice(0, one.lastIndexOf('-')), one.slice(one.lastIndexOf('-') + 1)];
  const cut = other.lastIndexOf('-');
  if (epoch !== other.slice(0, cut)) return other;
  return Number(position) <= Number(other.slice(cut + 1)) ? one : other;
}
