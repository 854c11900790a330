/** The store of the shown session, and the feed that fills it from the HTTP API and the stream. */
import { create } from 'zustand';
import { api, ApiError, hasStatus } from '../api/client';
import { SharedStream } from '../stream/shared_stream';
import { SessionFeed, type EventPage, type SessionStore } from './session_feed';
import { EMPTY } from './session_state';

export type { SessionStore };

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

const feed = new SessionFeed(useSessionStore, {
  read: async (session, before) => (await api.events(session, before)) as unknown as EventPage,
  follow: (place) => stream.watch(place),
  setCursor: (cursor) => stream.setCursor(cursor),
  restart: () => stream.start(),
  check: api.session,
  statusOf: (error) => (error instanceof ApiError ? error.status : 0),
});

const stream: SharedStream = new SharedStream({
  frame: (frame) => feed.handle(frame),
  connected: (yes) => feed.setConnected(yes),
  rejected: () => useSessionStore.setState({ loggedOut: true }),
  checkSession: () => feed.check(),
  mayRetry: async () => {
    try {
      await api.me();
      return true;
    } catch (error) {
      return !hasStatus(error, 401);
    }
  },
});

document.addEventListener('visibilitychange', () => feed.flush());

/** Start the event stream: of all sessions, or of the shown one only. */
export const startStream = (all: boolean): void => stream.start(all);
export const subscribe: SessionFeed['subscribe'] = (listener) => feed.subscribe(listener);
export const showSession: SessionFeed['show'] = (session) => feed.show(session);
export const reloadSession: SessionFeed['reload'] = () => feed.reload();
export const loadEarlier: SessionFeed['loadEarlier'] = (all) => feed.loadEarlier(all);
