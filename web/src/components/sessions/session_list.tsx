import { useQueryClient } from '@tanstack/react-query';
import { SlidersHorizontal, TextSearch } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { api, type SessionChanges, type SessionFilter } from '../../api/client';
import { useMessages } from '../../i18n/catalog';
import { useSessionMessages } from '../../i18n/sessions';
import { loadMore, useListed, useSessions } from '../../state/sessions';
import { groupSessions } from './groups';
import { SessionRow } from './session_row';

const SEARCH_DELAY_MS = 250;

interface Choice {
  /** "" for all. */
  channel: string;
  archived: boolean;
  oneShots: boolean;
}

const NO_CHOICE: Choice = { channel: '', archived: false, oneShots: false };

function filterOf({ channel, archived, oneShots }: Choice, text: string): SessionFilter {
  return {
    archived: archived ? 'true' : 'false',
    ...(!oneShots && { one_shots: 'false' }),
    ...(channel !== '' && { channel }),
    ...(text !== '' && { q: text }),
  };
}

/** All sessions by age, with search, filters and actions on one or several of them. */
export function SessionList({ session, onNavigate }: { session: string | null; onNavigate: () => void }) {
  const t = useMessages();
  const s = useSessionMessages();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [text, setText] = useState('');
  const wanted = useDelayed(text.trim());
  const [chosen, setChosen] = useState(NO_CHOICE);
  const [isOpen, setOpen] = useState(false);
  const [selected, setSelected] = useState<ReadonlySet<string> | null>(null);
  const [isConfirming, setConfirming] = useState(false);
  const [failure, setFailure] = useState('');
  const filter = filterOf(chosen, wanted);
  const { data, dataUpdatedAt, isError } = useSessions(filter);
  const rows = data?.sessions ?? [];
  const isFiltered = chosen.channel !== '' || chosen.archived || chosen.oneShots;
  const groups = wanted === '' ? groupSessions(rows, new Date(dataUpdatedAt)) : [{ name: null, rows }];
  useMarkRead(session);

  /** Do something with sessions, one after the other; the first failure is shown. */
  const each = async (ids: Iterable<string>, work: (id: string) => Promise<unknown>) => {
    setFailure('');
    try {
      // one at a time: the number of requests per minute is limited
      // oxlint-disable-next-line no-await-in-loop
      for (const id of ids) await work(id);
      setSelected(null);
    } catch (error) {
      setFailure((error as Error).message || t.unreachable);
    }
    setConfirming(false);
    await queries.invalidateQueries({ queryKey: ['sessions'] });
  };
  const change = (ids: Iterable<string>, changes: SessionChanges) => each(ids, (id) => api.change(id, changes));
  const remove = (ids: Iterable<string>) =>
    each(ids, async (id) => {
      await api.remove(id);
      if (id === session) navigate('/');
    });
  const set = (changes: Partial<Choice>) => setChosen((one) => ({ ...one, ...changes }));
  const toggle = (id: string) =>
    setSelected((ids) => (ids?.has(id) ? new Set([...ids].filter((one) => one !== id)) : new Set([...(ids ?? []), id])));

  return (
    <>
      <div className="flex items-center gap-1 px-2 pb-1">
        <label className="flex h-8 min-w-0 flex-1 items-center gap-2 rounded-lg px-2 text-dim focus-within:bg-hover hover:bg-hover">
          <TextSearch size={15} aria-hidden="true" className="flex-none" />
          <input
            type="search"
            aria-label={s.search}
            placeholder={s.search}
            maxLength={200}
            value={text}
            onChange={(event) => setText(event.target.value)}
            className="w-full min-w-0 bg-transparent text-ink outline-none! placeholder:text-dim"
          />
        </label>
        <button
          type="button"
          aria-label={s.filter}
          title={s.filter}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          className={`bar-button ${isFiltered ? 'text-accent!' : ''}`}
        >
          <SlidersHorizontal size={15} aria-hidden="true" />
        </button>
      </div>
      {isOpen && (
        <div className="mx-2 mb-1 flex flex-col gap-1.5 rounded-lg border border-line p-2 text-[13px]">
          <select
            aria-label={s.channel}
            value={chosen.channel}
            onChange={({ target }) => set({ channel: target.value })}
            className="h-7 rounded-md bg-hover px-1.5"
          >
            <option value="">{s.all}</option>
            {Object.entries(s.channels).map(([channel, name]) => (
              <option key={channel} value={channel}>
                {name}
              </option>
            ))}
          </select>
          <label className="flex items-center gap-2">
            <input type="checkbox" checked={chosen.archived} onChange={({ target }) => set({ archived: target.checked })} />
            {s.archived}
          </label>
          <label className="flex items-center gap-2">
            <input type="checkbox" checked={chosen.oneShots} onChange={({ target }) => set({ oneShots: target.checked })} />
            {s.oneShots}
          </label>
          <label className="flex items-center gap-2">
            <input type="checkbox" checked={selected !== null} onChange={({ target }) => setSelected(target.checked ? new Set() : null)} />
            {s.select}
          </label>
        </div>
      )}
      <nav aria-label={t.sessions} className="min-h-0 flex-1 overflow-y-auto px-2 pb-2">
        {failure !== '' && (
          <p role="alert" className="px-2 py-1 text-bad">
            {failure}
          </p>
        )}
        {data === undefined && <p className="px-2 py-1 text-dim">{isError ? t.unreachable : s.loading}</p>}
        {data?.next === null && rows.length === 0 && (
          <p className="px-2 py-1 text-dim">{wanted !== '' ? s.nothing : isFiltered ? s.noMatch : s.none}</p>
        )}
        {groups.map((group) => (
          <section key={group.name} className="mt-1">
            {group.name !== null && <h2 className="px-2 py-1 text-xs text-dim">{s.groups[group.name]}</h2>}
            <ul>
              {group.rows.map((row) => (
                <SessionRow
                  key={row.session_id}
                  row={row}
                  here={row.session_id === session}
                  found={wanted}
                  selected={selected === null ? null : selected.has(row.session_id)}
                  onSelect={() => toggle(row.session_id)}
                  onNavigate={onNavigate}
                  onChange={(changes) => void change([row.session_id], changes)}
                  onRemove={() => void remove([row.session_id])}
                />
              ))}
            </ul>
          </section>
        ))}
        {data?.next != null && <NextPage key={data.next} load={() => loadMore(queries, filter)} text={s.loading} />}
      </nav>
      {selected !== null && (
        <div className="flex flex-wrap items-center border-t border-line p-2 text-[13px]">
          <span className="mr-auto pl-1 tabular-nums" aria-live="polite">
            {s.selected(selected.size)}
          </span>
          <button type="button" disabled={selected.size === 0} className="rounded-md px-1.5 py-1 hover:bg-hover disabled:text-dim" onClick={() => void change(selected, { archived: !chosen.archived })}>
            {chosen.archived ? s.restore : s.archive}
          </button>
          <button
            type="button"
            disabled={selected.size === 0}
            className="rounded-md px-1.5 py-1 text-bad hover:bg-hover disabled:text-dim"
            onClick={() => (isConfirming ? void remove(selected) : setConfirming(true))}
            onBlur={() => setConfirming(false)}
          >
            {isConfirming ? s.confirm(selected.size) : s.delete}
          </button>
          <button type="button" className="rounded-md px-1.5 py-1 hover:bg-hover" onClick={() => setSelected(null)}>
            {s.cancel}
          </button>
        </div>
      )}
    </>
  );
}

/** Loads the next page when it is scrolled into view. */
function NextPage({ load, text }: { load: () => Promise<void>; text: string }) {
  const mark = useRef<HTMLParagraphElement>(null);
  const loader = useRef(load);
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry?.isIntersecting) return;
      observer.disconnect();
      void loader.current().catch(() => undefined);
    });
    if (mark.current !== null) observer.observe(mark.current);
    return () => observer.disconnect();
  }, []);
  return (
    <p ref={mark} className="px-2 py-1 text-dim">
      {text}
    </p>
  );
}

/** Tell the server that the shown session was read, once it is visible. */
function useMarkRead(session: string | null): void {
  const queries = useQueryClient();
  const isUnread = useListed(session)?.unread === true;
  useEffect(() => {
    if (session === null || !isUnread) return undefined;
    const markRead = () => {
      if (document.hidden) return;
      api.change(session, { read: true }).then(
        () => Promise.all([['sessions'], ['session', session]].map((queryKey) => queries.invalidateQueries({ queryKey }))),
        () => undefined,
      );
    };
    markRead();
    document.addEventListener('visibilitychange', markRead);
    return () => document.removeEventListener('visibilitychange', markRead);
  }, [session, isUnread, queries]);
}

function useDelayed(text: string): string {
  const [delayed, setDelayed] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(text), text === '' ? 0 : SEARCH_DELAY_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return delayed;
}
