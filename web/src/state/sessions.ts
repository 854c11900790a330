/** The list of sessions, and the title of one. */
import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import { useSessionStore } from './session_store';

const MAX_TITLE_CHARS = 80;

export function useSessions() {
  return useQuery({
    queryKey: ['sessions'],
    queryFn: () => api.sessions(),
    refetchInterval: 5_000,
    refetchOnWindowFocus: 'always',
  });
}

/** Return the title of a session; without one, the first line of its first task. */
export function useTitle(session: string | null): string {
  const { data } = useSessions();
  const listed = data?.sessions.find((row) => row.session_id === session)?.title;
  const task = useSessionStore((store) => store.state.runs[0]?.text);
  const loaded = useQuery({
    queryKey: ['session', session],
    queryFn: () => api.session(session ?? ''),
    enabled: session !== null && data !== undefined && listed === undefined,
  });
  return listed || loaded.data?.title || task?.split('\n')[0]?.slice(0, MAX_TITLE_CHARS) || '';
}
