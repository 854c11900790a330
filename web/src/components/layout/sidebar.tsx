import { Inbox, Keyboard, Languages, Library, ListTodo, LogOut, Monitor, Moon, Plus, Settings, Sun } from 'lucide-react';
import { Suspense } from 'react';
import { Link } from 'wouter';
import { address } from '../../api/address';
import { api, setLoginKey } from '../../api/client';
import { setPreferences, usePreferences, type Theme } from '../../state/preferences';
import { useWaitingCount } from '../../state/open_questions';
import { useMessages } from '../../i18n/catalog';
import { lazyComponent } from '../../lib/lazy';
import { NotificationButton } from './notification_button';

const SessionList = lazyComponent(() =>
  import('../sessions/session_list').then((module) => module.SessionList),
);

/** A page besides the conversations. */
export type PageName = 'waiting' | 'tasks' | 'library' | 'settings';

const NEXT_THEME: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

/** All sessions, and the controls of the whole page. */
export function Sidebar(props: {
  session: string | null;
  page: PageName | null;
  onShortcuts: () => void;
  onNavigate: () => void;
}) {
  const t = useMessages();
  const waiting = useWaitingCount();
  return (
    <div className="flex h-full flex-col bg-side">
      <div className="flex flex-col gap-0.5 p-2">
        <Link
          href="/"
          onClick={props.onNavigate}
          className="flex h-8 items-center gap-2 rounded-lg px-2 hover:bg-hover"
        >
          <Plus size={15} aria-hidden="true" />
          {t.newSession}
        </Link>
        {([['waiting', Inbox], ['tasks', ListTodo], ['library', Library], ['settings', Settings]] as const).map(([page, Icon]) => (
          <Link
            key={page}
            href={`/${page}`}
            onClick={props.onNavigate}
            aria-current={props.page === page ? 'page' : undefined}
            className={`flex h-8 items-center gap-2 rounded-lg px-2 hover:bg-hover ${props.page === page ? 'bg-hover font-medium' : ''}`}
          >
            <Icon size={15} aria-hidden="true" />
            {t[page]}
            {page === 'waiting' && waiting > 0 && <span className="ml-auto font-semibold text-warn tabular-nums">{waiting}</span>}
          </Link>
        ))}
      </div>
      <Suspense fallback={<div className="flex-1" />}>
        <SessionList session={props.session} onNavigate={props.onNavigate} />
      </Suspense>
      <Footer onShortcuts={props.onShortcuts} />
    </div>
  );
}

async function logOut(): Promise<void> {
  await api.logout().catch(() => undefined);
  setLoginKey(null);
  location.assign(address('/'));
}

function Footer({ onShortcuts }: { onShortcuts: () => void }) {
  const t = useMessages();
  const { language, theme } = usePreferences();
  const ThemeIcon = { system: Monitor, light: Sun, dark: Moon }[theme];
  return (
    <div className="flex items-center gap-0.5 border-t border-line p-2">
      <button
        type="button"
        className="bar-button"
        title={`${t.theme}: ${t.themes[theme]}`}
        aria-label={`${t.theme}: ${t.themes[theme]}`}
        onClick={() => setPreferences({ theme: NEXT_THEME[theme] })}
      >
        <ThemeIcon size={16} aria-hidden="true" />
      </button>
      <button
        type="button"
        className="bar-button w-auto! gap-1.5 px-2"
        onClick={() => setPreferences({ language: language === 'en' ? 'zh' : 'en' })}
      >
        <Languages size={16} aria-hidden="true" />
        <span lang={language === 'en' ? 'zh-CN' : 'en'}>{t.language}</span>
      </button>
      <span className="ml-auto">{isSecureContext && <NotificationButton />}</span>
      <button type="button" className="bar-button" title={t.shortcuts} aria-label={t.shortcuts} onClick={onShortcuts}>
        <Keyboard size={16} aria-hidden="true" />
      </button>
      <button type="button" className="bar-button" title={t.logOut} aria-label={t.logOut} onClick={() => void logOut()}>
        <LogOut size={16} aria-hidden="true" />
      </button>
    </div>
  );
}
