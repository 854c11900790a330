/**
 * One stream per browser: the tab that holds the lock reads it and tells the others.
 *
 * A tab says which session it shows and how far it has read; the leader opens the stream anew from
 * the oldest cursor, so that the newcomer is given the words of the reply that is being written. The
 * owner's stream is that of all sessions: what waits for a person anywhere is known at once.
 */
import type { Envelope } from './events';
import { Stream, type Frame } from './stream';

interface Wish {
  session: string;
  cursor: string;
}

type Word =
  | { kind: 'frame'; frame: Frame }
  | { kind: 'connected'; yes: boolean }
  | { kind: 'refused' }
  | { kind: 'recheck' }
  | { kind: 'who' }
  | { kind: 'watch'; tab: string; wish: Wish | null };

export interface HubEvents {
  frame: (frame: Frame) => void;
  connected: (yes: boolean) => void;
  /** The stream was refused for good until `watch` is called again. */
  refused: () => void;
  /** The stream was refused for now: perhaps a session of it is gone. */
  recheck: () => void;
  /** Asks the server why; false when the credential is not good any more. */
  mayRetry: () => Promise<boolean>;
}

const NAME = 'larkspur.stream';
/** A leader that is silent for so long is stuck: a tab that is looked at takes over. */
const SILENCE_MS = 45_000;

export class Hub {
  private readonly tab = freshId();
  private readonly channel = new BroadcastChannel(NAME);
  private readonly wishes = new Map<string, Wish>();
  private stream: Stream | null = null;
  private watched = '';
  private leads = false;
  /** Without locks (plain http from another machine) every tab has a stream of its own. */
  private alone = false;
  private wish: Wish | null = null;
  /** Whether all sessions may be watched; nothing is opened before that is known. */
  private all: boolean | null = null;
  private heard = Date.now();

  constructor(private readonly events: HubEvents) {
    this.channel.addEventListener('message', (message: MessageEvent<Word>) => {
      this.listen(message.data);
    });
    addEventListener('pagehide', () => this.say({ kind: 'watch', tab: this.tab, wish: null }));
    addEventListener('pageshow', (event) => {
      if (event.persisted) this.say({ kind: 'watch', tab: this.tab, wish: this.wish });
    });
    document.addEventListener('visibilitychange', this.look);
    setInterval(this.look, 15_000);
    if (navigator.locks === undefined) {
      this.alone = true;
      this.leads = true;
      return;
    }
    // a tab is alive as long as it holds a lock of its own
    void navigator.locks.request(`${NAME}.${this.tab}`, () => new Promise(() => {}));
    void this.stand({});
  }

  /** Begin to read, or go on after a refusal: all sessions, or only those that are shown. */
  begin(all: boolean | null = this.all): void {
    this.all = all;
    if (this.leads) void this.open(null);
  }

  /** Show a session from a cursor on; null shows none. */
  watch(wish: Wish | null): void {
    this.wish = wish;
    this.heard = Date.now();
    const word: Word = { kind: 'watch', tab: this.tab, wish };
    if (this.leads) this.listen(word);
    else this.say(word);
  }

  /** Note how far this tab has read: where a new leader goes on. */
  reached(cursor: string): void {
    if (this.wish !== null) this.wish = { ...this.wish, cursor };
  }

  private async stand(options: LockOptions): Promise<void> {
    try {
      await navigator.locks.request(NAME, options, () => {
        this.leads = true;
        this.say({ kind: 'who' });
        if (this.wish !== null) this.wishes.set(this.tab, this.wish);
        void this.open();
        return new Promise(() => {});
      });
    } catch {
      // another tab took the lead
      this.leads = false;
      this.stream?.close();
      this.stream = null;
      this.wishes.clear();
      void this.stand({});
    }
  }

  private say(word: Word): void {
    if (!this.alone) this.channel.postMessage(word);
  }

  private listen(word: Word): void {
    switch (word.kind) {
      case 'frame':
        this.heard = Date.now();
        this.events.frame(word.frame);
        return;
      case 'connected':
        this.heard = Date.now();
        this.events.connected(word.yes);
        return;
      case 'refused':
        this.events.refused();
        return;
      case 'recheck':
        this.events.recheck();
        return;
      case 'who':
        this.say({ kind: 'watch', tab: this.tab, wish: this.wish });
        return;
      case 'watch':
        if (!this.leads) return;
        if (word.wish === null) this.wishes.delete(word.tab);
        else this.wishes.set(word.tab, word.wish);
        void this.open(word.wish);
        return;
    }
  }

  private tell(word: Word): void {
    this.say(word);
    this.listen(word);
  }

  /** Open the stream for all that is wished; a wish that went needs no new one. */
  private async open(wish: Wish | null = this.wish): Promise<void> {
    await this.forget();
    if (!this.leads || this.all === null) return;
    const shown = [...new Set([...this.wishes.values()].map((one) => one.session))].toSorted();
    const known = this.all ? '*' : shown.join(',');
    if (wish === null && known === this.watched) return;
    const given = wish === null ? [] : [wish];
    const read = this.stream === null ? [...this.wishes.values()] : given;
    const cursor = read.reduce((one, { cursor: other }) => older(one, other), this.stream?.cursor ?? '');
    this.watched = known;
    this.stream?.close();
    this.stream = null;
    if (known === '') return;
    this.stream = new Stream(
      (after) => {
        const where = after === '' ? 'replay=none' : `after=${encodeURIComponent(after)}`;
        return `/api/sse?sessions=${encodeURIComponent(known)}&${where}`;
      },
      {
        frame: (frame) => {
          if (this.isWanted(frame)) this.tell({ kind: 'frame', frame });
        },
        connected: (yes) => this.tell({ kind: 'connected', yes }),
        refused: async () => {
          const again = await this.events.mayRetry();
          if (!again) this.watched = '';
          this.tell({ kind: again ? 'recheck' : 'refused' });
          return again;
        },
      },
      cursor,
    );
  }

  /** Words in the making are for whoever shows their session, all else is for every tab. */
  private isWanted(frame: Frame): boolean {
    const { session_id: session, run_id: run, seq } = frame.data as Partial<Envelope>;
    if (run === undefined || seq !== undefined) return true;
    return [...this.wishes.values()].some((one) => one.session === session);
  }

  /** Drop the wishes of tabs that are gone without a word. */
  private async forget(): Promise<void> {
    if (this.alone) return;
    const { held = [] } = await navigator.locks.query();
    const alive = new Set(held.map((lock) => lock.name?.slice(NAME.length + 1)));
    for (const tab of this.wishes.keys()) {
      if (tab !== this.tab && !alive.has(tab)) this.wishes.delete(tab);
    }
  }

  private readonly look = (): void => {
    const silent = Date.now() - this.heard > SILENCE_MS;
    const cares = this.all === true || this.wish !== null;
    if (this.leads || !cares || !silent || document.visibilityState !== 'visible') return;
    this.heard = Date.now();
    void this.stand({ steal: true });
  };
}

/** Return an id that nobody else has, also where the browser offers no `randomUUID`. */
export function freshId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Return the older of two wire ids; none says nothing, ids of two logs begin anew. */
export function older(one: string, other: string): string {
  if (one === '' || other === '') return one || other;
  const [epoch, position] = [one.slice(0, one.lastIndexOf('-')), one.slice(one.lastIndexOf('-') + 1)];
  const cut = other.lastIndexOf('-');
  if (epoch !== other.slice(0, cut)) return other;
  return Number(position) <= Number(other.slice(cut + 1)) ? one : other;
}
