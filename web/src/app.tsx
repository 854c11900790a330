import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useLocation, useRoute } from 'wouter';
import { api, ApiError } from './api/client';
import { reloadSession, showSession, startStream, subscribe, useSessionStore } from './state/session_store';
import { onLogin } from './api/login';
import { isTyping } from './lib/keyboard';
import { Composer } from './components/composer/composer';
import { DecisionBar } from './components/decision/decision_bar';
import { Header, useTitle } from './components/layout/header';
import { WaitingPage } from './components/decision/waiting_page';
import { Login } from './components/layout/login';
import { CommandPalette } from './components/layout/command_palette';
import { SidePanel } from './components/layout/side_panel';
import { ConnectionStatus } from './components/layout/connection_status';
import { Drawer } from './components/layout/dialog';
import { Sidebar } from './components/layout/sidebar';
import { ShortcutsDialog } from './components/layout/shortcuts_dialog';
import { Conversation } from './components/thread/conversation';
import { useQuestionEvents, useWaitingCount } from './state/open_questions';
import { useMessages } from './i18n/catalog';

type Overlay = 'none' | 'palette' | 'keys' | 'menu' | 'panel';

export function App() {
  const t = useMessages();
  const queries = useQueryClient();
  const [, params] = useRoute('/sessions/:id');
  const [waiting] = useRoute('/waiting');
  const [, navigate] = useLocation();
  const [overlay, setOverlay] = useState<Overlay>('none');
  const [panel, setPanel] = useState(true);
  const me = useQuery({ queryKey: ['me'], queryFn: api.me, retry: onlyUnreached, retryDelay: 1_000 });
  const loggedOut = useSessionStore((one) => one.loggedOut);
  const session = params?.id ?? null;
  const wide = useWide();

  useEffect(() => showSession(session), [session]);
  useEffect(() => onLogin(() => void queries.invalidateQueries()), [queries]);
  useListRefresh();
  useQuestionEvents();
  useBadge(session, waiting);
  useEffect(() => {
    if (me.data !== undefined) startStream(me.data.roles.includes('owner'));
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
    reloadSession();
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
      onNavigate={shut}
    />
  );
  return (
    <div className="flex h-full">
      <ConnectionStatus />
      <aside className="hidden w-60 flex-none border-r border-line bg-side min-[720px]:block" aria-label={t.sessions}>
        {sidebar}
      </aside>
      <main className="flex min-w-0 flex-1 flex-col">
        {waiting ? (
          <>
            <WaitingPage onMenu={() => setOverlay('menu')} />
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
            <Conversation key={session ?? 'new'} session={session} me={me.data} />
            {session !== null && <DecisionBar key={`bar:${session}`} session={session} />}
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
        <aside className="w-[300px] flex-none border-l border-line" aria-label={t.panel}>
          <SidePanel />
        </aside>
      )}
      {overlay === 'menu' && (
        <Drawer side="left" label={t.menu} onClose={shut}>
          {sidebar}
        </Drawer>
      )}
      {overlay === 'panel' && (
        <Drawer side="right" label={t.panel} onClose={shut}>
          <SidePanel />
        </Drawer>
      )}
      {overlay === 'palette' && <CommandPalette onClose={shut} onKeys={() => setOverlay('keys')} />}
      {overlay === 'keys' && <ShortcutsDialog onClose={shut} />}
    </div>
  );
}

function onlyUnreached(_count: number, error: Error): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500);
}

/** The title of the window says how much waits, and what is shown. */
function useBadge(session: string | null, waiting: boolean): void {
  const t = useMessages();
  const count = useWaitingCount();
  const title = useTitle(session);
  useEffect(() => {
    const shown = waiting ? t.waiting : title;
    const place = shown === '' ? t.product : `${shown} · ${t.product}`;
    document.title = count > 0 ? `(${count}) ${place}` : place;
  }, [count, title, waiting, t]);
}

/** Read the list of sessions again when a run begins, is named, waits or ends. */
function useListRefresh(): void {
  const queries = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(
    () =>
      subscribe((event) => {
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
