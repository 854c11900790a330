import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useLocation, useRoute } from 'wouter';
import { api, ApiError } from './api';
import { follow, listen, reload, show, useConversation } from './conversation';
import { onLogin } from './entering';
import { isTyping } from './keyboard';
import { Composer } from './parts/composer';
import { Bar } from './parts/bar';
import { Header, useTitle } from './parts/header';
import { Inbox } from './parts/inbox';
import { Login } from './parts/login';
import { Palette } from './parts/palette';
import { Panel } from './parts/panel';
import { Reconnecting } from './parts/reconnecting';
import { Sheet } from './parts/sheet';
import { Sidebar } from './parts/sidebar';
import { Keys } from './parts/keys';
import { Stage } from './parts/stage';
import { useFollowedQuestions, useWaitingCount } from './waiting';
import { useWords } from './words';

type Overlay = 'none' | 'palette' | 'keys' | 'menu' | 'panel';

export function App() {
  const words = useWords();
  const queries = useQueryClient();
  const [, params] = useRoute('/sessions/:id');
  const [waiting] = useRoute('/waiting');
  const [, navigate] = useLocation();
  const [overlay, setOverlay] = useState<Overlay>('none');
  const [panel, setPanel] = useState(true);
  const me = useQuery({ queryKey: ['me'], queryFn: api.me, retry: onlyUnreached, retryDelay: 1_000 });
  const loggedOut = useConversation((one) => one.loggedOut);
  const session = params?.id ?? null;
  const wide = useWide();

  useEffect(() => show(session), [session]);
  useEffect(() => onLogin(() => void queries.invalidateQueries()), [queries]);
  useListRefresh();
  useFollowedQuestions();
  useBadge(session, waiting);
  useEffect(() => {
    if (me.data !== undefined) follow(me.data.roles.includes('owner'));
  }, [me.data]);

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setOverlay((now) => (now === 'palette' ? 'none' : 'palette'));
      } else if (event.key === '?' && !isTyping(event)) {
        setOverlay('keys');
      } else if (event.key === '/' && !isTyping(event)) {
        event.preventDefault();
        document.getElementById('message')?.focus();
      }
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);

  const shut = () => setOverlay('none');
  const entered = () => {
    reload();
    void queries.invalidateQueries();
  };
  const unknown = me.error instanceof ApiError && me.error.status === 401;
  if (unknown && !me.data) return <Login onEntered={entered} />;
  const login = loggedOut || unknown ? <Login small onEntered={entered} /> : null;
  const sidebar = (
    <Sidebar
      session={session}
      waiting={waiting}
      onSearch={() => setOverlay('palette')}
      onKeys={() => setOverlay('keys')}
      onLeave={shut}
    />
  );
  return (
    <div className="flex h-full">
      <Reconnecting />
      <aside className="hidden w-60 flex-none border-r border-line bg-side min-[720px]:block" aria-label={words.sessions}>
        {sidebar}
      </aside>
      <main className="flex min-w-0 flex-1 flex-col">
        {waiting ? (
          <>
            <Inbox onMenu={() => setOverlay('menu')} />
            {login !== null && <div className="mx-auto w-full max-w-[808px] px-6 pb-4">{login}</div>}
          </>
        ) : (
          <>
            <Header
              session={session}
              me={me.data}
              onMenu={() => setOverlay('menu')}
              onPanel={() => (wide ? setPanel((now) => !now) : setOverlay('panel'))}
            />
            <Stage key={session ?? 'new'} session={session} me={me.data} />
            {session !== null && <Bar key={`bar:${session}`} session={session} />}
            <Composer
              key={`composer:${session ?? 'new'}`}
              session={session}
              onStarted={(id) => navigate(`/sessions/${id}`)}
              login={login}
            />
          </>
        )}
      </main>
      {session !== null && panel && wide && (
        <aside className="w-[300px] flex-none border-l border-line" aria-label={words.panel}>
          <Panel />
        </aside>
      )}
      {overlay === 'menu' && (
        <Sheet side="left" label={words.menu} onClose={shut}>
          {sidebar}
        </Sheet>
      )}
      {overlay === 'panel' && (
        <Sheet side="right" label={words.panel} onClose={shut}>
          <Panel />
        </Sheet>
      )}
      {overlay === 'palette' && <Palette onClose={shut} onKeys={() => setOverlay('keys')} />}
      {overlay === 'keys' && <Keys onClose={shut} />}
    </div>
  );
}

function onlyUnreached(_count: number, error: Error): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500);
}

/** The title of the window says how much waits, and what is shown. */
function useBadge(session: string | null, waiting: boolean): void {
  const words = useWords();
  const count = useWaitingCount();
  const title = useTitle(session);
  useEffect(() => {
    const shown = waiting ? words.waiting : title;
    const place = shown === '' ? words.product : `${shown} · ${words.product}`;
    document.title = count > 0 ? `(${count}) ${place}` : place;
  }, [count, title, waiting, words]);
}

/** Read the list of sessions again when a run begins, is named, waits or ends. */
function useListRefresh(): void {
  const queries = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(
    () =>
      listen((event) => {
        const names = ['workflow.lifecycle.updated', 'workflow.plan.updated'];
        if (!names.includes(event.event) && !event.event.startsWith('workflow.result.')) return;
        clearTimeout(timer.current);
        timer.current = setTimeout(
          () => void queries.invalidateQueries({ queryKey: ['sessions'] }),
          200,
        );
      }),
    [queries],
  );
}

function useWide(): boolean {
  const [wide, setWide] = useState(() => matchMedia('(min-width: 1200px)').matches);
  useEffect(() => {
    const query = matchMedia('(min-width: 1200px)');
    const change = () => setWide(query.matches);
    query.addEventListener('change', change);
    return () => query.removeEventListener('change', change);
  }, []);
  return wide;
}
