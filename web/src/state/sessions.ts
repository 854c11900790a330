/** The lists of sessions, and the title of one. */
import { useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query';
import { api, type SessionFilter, type SessionListItem, type SessionsPage, type SessionView } from '../api/client';
import { useSessionStore } from './session_store';

const MAX_TITLE_CHARS = 80;
/** What the list shows by default. */
export const DEFAULT_FILTER: SessionFilter = { archived: 'false', one_shots: 'false' };

const keyOf = (filter: SessionFilter) => ['sessions', filter];

/** Return the sessions that were loaded. The first page is live, older ones are kept as they were. */
export function useSessions(filter: SessionFilter = DEFAULT_FILTER) {
  const queries = useQueryClient();
  return useQuery({
    queryKey: keyOf(filter),
    queryFn: async () => mergeFirst(queries.getQueryData(keyOf(filter)), await api.sessions(filter)),
    // a search reads many sessions
    refetchInterval: filter.q === undefined ? 5_000 : false,
    refetchOnWindowFocus: filter.q === undefined ? 'always' : false,
  });
}

/** Load the next page of a list. */
export async function loadMore(queries: QueryClient, filter: SessionFilter): Promise<void> {
  const key = keyOf(filter);
  const cursor = queries.getQueryData<SessionsPage>(key)?.next;
  if (!cursor) return;
  const page = await api.sessions(filter, cursor);
  queries.setQueryData<SessionsPage>(key, (known) => known && { sessions: joined(known.sessions, page.sessions), next: page.next });
}

/**
 * Return the loaded sessions after the first page was read again. Those behind its last session stay;
 * one that should be on it and is not was removed.
 */
export function mergeFirst(known: SessionsPage | undefined, page: SessionsPage): SessionsPage {
  const last = page.sessions.at(-1);
  if (known === undefined || last === undefined || page.next === null) return page;
  const shown = new Set(page.sessions.map((row) => row.session_id));
  const older = known.sessions.filter((row) => !shown.has(row.session_id) && isAfter(row, last));
  return older.length === 0 ? page : { sessions: [...page.sessions, ...older], next: known.next };
}

function joined(known: SessionListItem[], added: SessionListItem[]): SessionListItem[] {
  const ids = new Set(added.map((row) => row.session_id));
  return [...known.filter((row) => !ids.has(row.session_id)), ...added];
}

function isAfter(row: SessionListItem, last: SessionListItem): boolean {
  if (row.pinned !== last.pinned) return last.pinned;
  return row.updated === last.updated ? row.session_id < last.session_id : row.updated < last.updated;
}

/** Return what is known of a session, from the list or on its own. */
export function useListed(session: string | null): SessionView | undefined {
  const { data } = useSessions();
  const listed = data?.sessions.find((row) => row.session_id === session);
  const loaded = useQuery({
    queryKey: ['session', session],
    queryFn: () => api.session(session ?? ''),
    enabled: session !== null && data !== undefined && listed === undefined,
  });
  return listed ?? loaded.data;
}

/** Return the title of a session; without one, the first line of its first task. */
export function useTitle(session: string | null): string {
  const title = useListed(session)?.title;
  const task = useSessionStore((store) => (store.earlier === null ? store.state.runs[0]?.text : undefined));
  return title || task?.split('\n')[0]?.slice(0, MAX_TITLE_CHARS) || '';
}
