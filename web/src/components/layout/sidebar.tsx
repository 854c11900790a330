import { Inbox, Keyboard, Languages, Library, LogOut, Monitor, Moon, Plus, Search, Sun } from 'lucide-react';
import { Link } from 'wouter';
import { api, setLoginKey, type SessionListItem } from '../../api/client';
import { useSessionStore } from '../../state/session_store';
import { setPreferences, usePreferences, type Theme } from '../../state/preferences';
import { isOver } from '../../state/session_state';
import { useSessions } from '../../state/sessions';
import { useOpenQuestions, useWaitingCount } from '../../state/open_questions';
import { useMessages } from '../../i18n/catalog';
import { COMMAND } from '../../lib/keyboard';
import { StatusIcon } from '../thread/status_icon';
import { NotificationButton } from './notification_button';

const NEXT_THEME: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

/** All sessions, active ones first, and the controls of the whole page. */
export function Sidebar(props: {
  session: string | null;
  page: 'waiting' | 'library' | null;
  onSearch: () => void;
  onShortcuts: () => void;
  onNavigate: () => void;
}) {
  const t = useMessages();
  const { data, dataUpdatedAt } = useSessions();
  const waiting = useWaitingCount();
  const asked = useOpenQuestions().data?.questions ?? [];
  const first = useSessionStore((store) => store.state.runs[0]?.text);
  // sessions with an active task come first
  const rows = (data?.sessions ?? []).toSorted((a, b) => rank(a) - rank(b));
  const today = new Date(dataUpdatedAt).toDateString();
  const isToday = (row: SessionListItem) => new Date(row.updated).toDateString() === today;
  const groups = [
    { title: t.today, rows: rows.filter(isToday) },
    { title: t.earlier, rows: rows.filter((row) => !isToday(row)) },
  ].filter((group) => group.rows.length > 0);
  return (
    <div className="flex h-full flex-col bg-side">
      <div className="flex flex-col gap-0.5 p-2">
        <button
          type="button"
          onClick={props.onSearch}
          className="flex h-8 items-center gap-2 rounded-lg px-2 text-dim hover:bg-hover hover:text-ink"
        >
          <Search size={15} aria-hidden="true" />
          {t.search}
          <kbd className="ml-auto font-sans text-xs">{COMMAND}K</kbd>
        </button>
        <Link
          href="/"
          onClick={props.onNavigate}
          className="flex h-8 items-center gap-2 rounded-lg px-2 hover:bg-hover"
        >
          <Plus size={15} aria-hidden="true" />
          {t.newSession}
        </Link>
        {([['waiting', Inbox], ['library', Library]] as const).map(([page, Icon]) => (
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
      <nav aria-label={t.sessions} className="min-h-0 flex-1 overflow-y-auto px-2 pb-2">
        {data && rows.length === 0 && <p className="px-2 py-1 text-dim">{t.noSessions}</p>}
        {groups.map((group) => (
          <section key={group.title} className="mt-2">
            <h2 className="px-2 py-1 text-xs text-dim">{group.title}</h2>
            <ul>
              {group.rows.map((row) => (
                <li key={row.session_id}>
                  <SessionLink
                    row={row}
                    task={row.session_id === props.session ? first : asked.find((store) => store.session_id === row.session_id)?.task}
                    here={row.session_id === props.session}
                    onNavigate={props.onNavigate}
                  />
                </li>
              ))}
            </ul>
          </section>
        ))}
      </nav>
      <Footer onShortcuts={props.onShortcuts} />
    </div>
  );
}

function rank(row: SessionListItem): number {
  return row.status === null || isOver(row.status) ? 1 : 0;
}

function SessionLink(props: {
  row: SessionListItem;
  /** Shown for a session without a title. */
  task: string | undefined;
  here: boolean;
  onNavigate: () => void;
}) {
  const { row, here, onNavigate } = props;
  const t = useMessages();
  return (
    <Link
      href={`/sessions/${row.session_id}`}
      onClick={onNavigate}
      aria-current={here ? 'page' : undefined}
      className={`flex h-8 items-center gap-1 rounded-lg pr-2 pl-1 hover:bg-hover ${here ? 'bg-hover font-medium' : ''}`}
    >
      {row.status === null ? (
        <span className="glyph" />
      ) : (
        <StatusIcon status={row.status} label={t.status[row.status]} />
      )}
      <span className="truncate">{row.title || props.task || t.untitled}</span>
    </Link>
  );
}

async function logOut(): Promise<void> {
  await api.logout().catch(() => undefined);
  setLoginKey(null);
  location.assign('/');
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
      <span className="ml-auto">
        <NotificationButton />
      </span>
      <button type="button" className="bar-button" title={t.shortcuts} aria-label={t.shortcuts} onClick={onShortcuts}>
        <Keyboard size={16} aria-hidden="true" />
      </button>
      <button type="button" className="bar-button" title={t.logOut} aria-label={t.logOut} onClick={() => void logOut()}>
        <LogOut size={16} aria-hidden="true" />
      </button>
    </div>
  );
}
