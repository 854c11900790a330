import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Suspense, useEffect, useRef, useState, type ComponentType } from 'react';
import { useLocation, useRoute } from 'wouter';
import { api, ApiError, hasStatus } from './api/client';
import { onLogin } from './api/login';
import { Composer } from './components/composer/composer';
import { DecisionBar } from './components/decision/decision_bar';
import { ConnectionStatus } from './components/layout/connection_status';
import { ErrorBoundary } from './components/layout/error_boundary';
import { Header } from './components/layout/header';
import { Sidebar, type PageName } from './components/layout/sidebar';
import { Conversation } from './components/thread/conversation';
import { useMessages } from './i18n/catalog';
import { isTyping } from './lib/keyboard';
import { lazyComponent } from './lib/lazy';
import { useQuestionEvents, useWaitingCount } from './state/open_questions';
import { reloadSession, showSession, startStream, subscribe, useSessionStore } from './state/session_store';
import { loadRunMessages } from './i18n/runs';
import { useAttention } from './state/attention';
import { usePreferences } from './state/preferences';
import { useTitle } from './state/sessions';

const WaitingPage = lazyComponent(() =>
  import('./components/decision/waiting_page').then((module) => module.WaitingPage),
);
const TasksPage = lazyComponent(() => import('./components/tasks/tasks_page').then((module) => module.TasksPage));
const LibraryPage = lazyComponent(() =>
  import('./components/files/library_page').then((module) => module.LibraryPage),
);
const SettingsPage = lazyComponent(() =>
  import('./components/settings/settings_page').then((module) => module.SettingsPage),
);
const PAGES: Record<PageName, ComponentType<{ onMenu: () => void; section?: string | undefined }>> = {
  waiting: WaitingPage,
  tasks: TasksPage,
  library: LibraryPage,
  settings: SettingsPage,
};
const SidePanel = lazyComponent(() => import('./components/layout/side_panel').then((module) => module.SidePanel));
const Login = lazyComponent(() => import('./components/layout/login').then((module) => module.Login));
const CommandPalette = lazyComponent(() =>
  import('./components/layout/command_palette').then((module) => module.CommandPalette),
);
const Drawer = lazyComponent(() => import('./components/layout/drawer').then((module) => module.Drawer));
const ShortcutsDialog = lazyComponent(() =>
  import('./components/layout/shortcuts_dialog').then((module) => module.ShortcutsDialog),
);

// of no use in a secure context, where it would be loaded for nothing
const PlainHttpNotice = isSecureContext
  ? null
  : lazyComponent(() => import('./components/layout/plain_http_notice').then((module) => module.PlainHttpNotice));

const WIDE = '(min-width: 1200px)';
const LIST_REFRESH_DELAY_MS = 200;

type Overlay = 'none' | 'palette' | 'shortcuts' | 'menu' | 'panel';

export function App() {
  const t = useMessages();
  const isNoticeDismissed = usePreferences((preferences) => preferences.plainHttpNoticeDismissed);
  const queries = useQueryClient();
  const [, params] = useRoute('/sessions/:id');
  const [isWaitingPage] = useRoute('/waiting');
  const [isTasks] = useRoute('/tasks');
  const [isLibrary] = useRoute('/library');
  const [isSettings, settings] = useRoute('/settings/:section?');
  const page: PageName | null = isWaitingPage ? 'waiting' : isTasks ? 'tasks' : isLibrary ? 'library' : isSettings ? 'settings' : null;
  const Page = page === null ? null : PAGES[page];
  const [, navigate] = useLocation();
  const [overlay, setOverlay] = useState<Overlay>('none');
  const [hasPanel, setHasPanel] = useState(true);
  const me = useQuery({ queryKey: ['me'], queryFn: api.me, retry: isUnreachable, retryDelay: 1_000 });
  const loggedOut = useSessionStore((store) => store.loggedOut);
  const session = params?.id ?? null;
  const wide = useWide();

  useEffect(() => showSession(session), [session]);
  useEffect(() => onLogin(() => void queries.invalidateQueries()), [queries]);
  useListRefresh();
  useQuestionEvents();
  useWindowTitle(session, page);
  useEffect(() => {
    if (me.data !== undefined) startStream(me.data.roles.includes('owner'));
  }, [me.data]);
  useGlobalShortcuts(setOverlay);

  const closeOverlay = () => setOverlay('none');
  const onLoggedIn = () => {
    reloadSession();
    void queries.invalidateQueries();
  };
  const isUnauthorized = hasStatus(me.error, 401);
  if (isUnauthorized && !me.data) {
    return (
      <Suspense fallback={null}>
        <Login onLoggedIn={onLoggedIn} />
      </Suspense>
    );
  }
  const login =
    loggedOut || isUnauthorized ? (
      <Suspense fallback={null}>
        <Login small onLoggedIn={onLoggedIn} />
      </Suspense>
    ) : null;
  const sidebar = (
    <ErrorBoundary part="sidebar">
      <Sidebar
        session={session}
        page={page}
        onShortcuts={() => setOverlay('shortcuts')}
        onNavigate={closeOverlay}
      />
    </ErrorBoundary>
  );
  const panel = (
    <ErrorBoundary part={`panel:${session}`}>
      <Suspense fallback={null}>
        <SidePanel />
      </Suspense>
    </ErrorBoundary>
  );
  return (
    <div className="flex h-full">
      <ConnectionStatus />
      <aside className="hidden w-60 flex-none border-r border-line bg-side min-[720px]:block" aria-label={t.sessions}>
        {sidebar}
      </aside>
      <main className="flex min-w-0 flex-1 flex-col">
        {PlainHttpNotice !== null && !isNoticeDismissed && (
          <Suspense fallback={null}>
            <PlainHttpNotice />
          </Suspense>
        )}
        {Page !== null ? (
          <>
            <ErrorBoundary part={`${page}:${settings?.section ?? ''}`} room="column">
              <Suspense fallback={<div className="flex-1" />}>
                <Page onMenu={() => setOverlay('menu')} section={settings?.section} />
              </Suspense>
            </ErrorBoundary>
            {login !== null && <div className="mx-auto w-full max-w-[808px] px-6 pb-4">{login}</div>}
          </>
        ) : (
          <>
            <ErrorBoundary part={`header:${session}`}>
              <Header
                session={session}
                me={me.data}
                onMenu={() => setOverlay('menu')}
                onPanel={() => (wide ? setHasPanel((shown) => !shown) : setOverlay('panel'))}
              />
            </ErrorBoundary>
            <ErrorBoundary part={`conversation:${session ?? 'new'}`} room="column">
              <Conversation key={session ?? 'new'} session={session} me={me.data} />
            </ErrorBoundary>
            {session !== null && (
              <ErrorBoundary part={`decision:${session}`}>
                <DecisionBar key={`decision:${session}`} session={session} />
              </ErrorBoundary>
            )}
            <ErrorBoundary part={`composer:${session}`}>
              <Composer
                key={`composer:${session ?? 'new'}`}
                session={session}
                me={me.data}
                onStarted={(id) => navigate(`/sessions/${id}`)}
                login={login}
              />
            </ErrorBoundary>
          </>
        )}
      </main>
      {session !== null && hasPanel && wide && (
        <aside className="w-[300px] flex-none border-l border-line" aria-label={t.panel}>
          {panel}
        </aside>
      )}
      <Suspense fallback={null}>
      {overlay === 'menu' && (
        <Drawer side="left" label={t.menu} onClose={closeOverlay}>
          {sidebar}
        </Drawer>
      )}
      {overlay === 'panel' && (
        <Drawer side="right" label={t.panel} onClose={closeOverlay}>
          {panel}
        </Drawer>
      )}
        {overlay === 'palette' && (
          <CommandPalette onClose={closeOverlay} onShortcuts={() => setOverlay('shortcuts')} />
        )}
        {overlay === 'shortcuts' && <ShortcutsDialog onClose={closeOverlay} />}
      </Suspense>
    </div>
  );
}

function isUnreachable(_count: number, error: Error): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500);
}

function useGlobalShortcuts(setOverlay: (change: (shown: Overlay) => Overlay) => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setOverlay((shown) => (shown === 'palette' ? 'none' : 'palette'));
      } else if (event.key === '?' && !isTyping(event)) {
        setOverlay(() => 'shortcuts');
      } else if (event.key === '/' && !isTyping(event)) {
        event.preventDefault();
        document.getElementById('message')?.focus();
      }
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [setOverlay]);
}

/** Show what needs attention and the name of the page in the window title. */
function useWindowTitle(session: string | null, page: PageName | null): void {
  const t = useMessages();
  const count = useWaitingCount();
  const title = useTitle(session);
  const hasEnded = useAttention((attention) => attention.ended);
  useEffect(() => {
    const texts = () => ({ ...t.notices, subtask: t.subtask });
    // A new version of the page may have replaced the module: then nobody is notified.
    const started = import('./state/notifications')
      .then((module) => module.startNotifications(texts, loadRunMessages))
      .catch(() => undefined);
    return () => void started.then((stop) => stop?.());
  }, [t]);
  useEffect(() => {
    const name = page === null ? title : t[page];
    const text = name === '' ? t.product : `${name} · ${t.product}`;
    document.title = `${hasEnded ? '✓ ' : ''}${count > 0 ? `(${count}) ` : ''}${text}`;
  }, [count, hasEnded, title, page, t]);
}

/** Reload the list of sessions when a run starts, is named, waits or ends. */
function useListRefresh(): void {
  const queries = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(
    () =>
      subscribe((event) => {
        const names = ['workflow.lifecycle.updated', 'workflow.plan.updated', 'workflow.session.titled'];
        if (!names.includes(event.event) && !event.event.startsWith('workflow.result.')) return;
        clearTimeout(timer.current);
        timer.current = setTimeout(
          () => void queries.invalidateQueries({ queryKey: ['sessions'] }),
          LIST_REFRESH_DELAY_MS,
        );
      }),
    [queries],
  );
}

function useWide(): boolean {
  const [wide, setWide] = useState(() => matchMedia(WIDE).matches);
  useEffect(() => {
    const query = matchMedia(WIDE);
    const change = () => setWide(query.matches);
    query.addEventListener('change', change);
    return () => query.removeEventListener('change', change);
  }, []);
  return wide;
}
