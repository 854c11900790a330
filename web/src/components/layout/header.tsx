import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Menu, PanelRight, Pencil, Trash2 } from 'lucide-react';
import { useState, type FormEvent } from 'react';
import { useLocation } from 'wouter';
import { api, type MeView } from '../../api/client';
import { useSessionStore } from '../../state/session_store';
import { activeRun } from '../../state/event_reducer';
import type { State } from '../../state/session_state';
import { useWaitingCount } from '../../state/open_questions';
import { useMessages } from '../../i18n/catalog';
import { StatusIcon } from '../thread/status_icon';
import { Dialog } from './dialog';
import { useSessions } from './sidebar';

export function useTitle(session: string | null): string {
  const { data } = useSessions();
  const known = data?.sessions.find((row) => row.session_id === session)?.title;
  const first = useSessionStore((one) => one.state.runs[0]?.text);
  const asked = useQuery({
    queryKey: ['session', session],
    queryFn: () => api.session(session ?? ''),
    enabled: session !== null && data !== undefined && known === undefined,
  });
  return known || asked.data?.title || first?.split('\n')[0]?.slice(0, 80) || '';
}

function statusOf(state: State) {
  return activeRun(state)?.status ?? state.runs.at(-1)?.status;
}

export function Header(props: {
  session: string | null;
  me: MeView | undefined;
  onMenu: () => void;
  onPanel: () => void;
}) {
  const t = useMessages();
  const title = useTitle(props.session);
  const status = useSessionStore((one) => statusOf(one.state));
  const model = useSessionStore((one) => lastModel(one.state)) || props.me?.model;
  const [asks, setAsks] = useState<'none' | 'rename' | 'delete'>('none');
  return (
    <header className="flex h-12 flex-none items-center gap-2 border-b border-line px-3">
      <button type="button" className="bar-button relative min-[720px]:hidden" aria-label={t.menu} onClick={props.onMenu}>
        <Menu size={18} aria-hidden="true" />
        <WaitingDot />
      </button>
      <h1 className="min-w-0 truncate font-semibold">
        {props.session === null ? t.newSession : title || t.untitled}
      </h1>
      {props.session !== null && (
        <span className="flex flex-none">
          <button type="button" className="bar-button h-7! w-7!" title={t.rename} aria-label={t.rename} onClick={() => setAsks('rename')}>
            <Pencil size={13} aria-hidden="true" />
          </button>
          <button type="button" className="bar-button h-7! w-7!" title={t.delete} aria-label={t.delete} onClick={() => setAsks('delete')}>
            <Trash2 size={13} aria-hidden="true" />
          </button>
        </span>
      )}
      <span className="ml-auto flex flex-none items-center gap-2 text-dim">
        <span className="hidden max-w-48 truncate sm:inline">{model}</span>
        {status !== undefined && props.session !== null && (
          <span data-testid="status" className="flex items-center">
            <StatusIcon status={status} />
            {t.status[status]}
          </span>
        )}
      </span>
      {props.session !== null && (
        <button type="button" className="bar-button" title={t.panel} aria-label={t.panel} onClick={props.onPanel}>
          <PanelRight size={17} aria-hidden="true" />
        </button>
      )}
      {asks === 'rename' && props.session !== null && (
        <Rename session={props.session} title={title} onClose={() => setAsks('none')} />
      )}
      {asks === 'delete' && props.session !== null && (
        <Delete session={props.session} onClose={() => setAsks('none')} />
      )}
    </header>
  );
}

/** Where the list is out of sight: a dot says that something waits. */
function WaitingDot() {
  const count = useWaitingCount();
  return count === 0 ? null : <span aria-hidden="true" className="absolute top-1 right-1 size-2 rounded-full bg-warn" />;
}

function lastModel(state: State): string {
  for (let at = state.thread.lines.length - 1; at >= 0; at -= 1) {
    const line = state.thread.lines[at];
    if (line?.kind === 'say') return line.model;
  }
  return '';
}

function Rename(props: { session: string; title: string; onClose: () => void }) {
  const t = useMessages();
  const queries = useQueryClient();
  const [title, setTitle] = useState(props.title);
  const [error, setError] = useState('');
  const save = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await api.rename(props.session, title);
      await queries.invalidateQueries({ queryKey: ['sessions'] });
      props.onClose();
    } catch (reason) {
      setError((reason as Error).message || t.unreachable);
    }
  };
  return (
    <Dialog label={t.renameTitle} className="m-auto w-[min(26rem,92vw)] rounded-xl p-4" onClose={props.onClose}>
      <form onSubmit={save}>
        <h2 className="mb-3 font-semibold">{t.renameTitle}</h2>
        <input
          aria-label={t.renameTitle}
          value={title}
          maxLength={200}
          onChange={(event) => setTitle(event.target.value)}
          className="w-full rounded-lg border border-line bg-bg px-3 py-1.5"
        />
        {error !== '' && (
          <p role="alert" className="mt-2 text-bad">
            {error}
          </p>
        )}
        <Choices confirm={t.save} onClose={props.onClose} />
      </form>
    </Dialog>
  );
}

function Delete(props: { session: string; onClose: () => void }) {
  const t = useMessages();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [error, setError] = useState('');
  const remove = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await api.remove(props.session);
      navigate('/');
      await queries.invalidateQueries({ queryKey: ['sessions'] });
      props.onClose();
    } catch (reason) {
      setError((reason as Error).message || t.unreachable);
    }
  };
  return (
    <Dialog label={t.deleteTitle} className="m-auto w-[min(26rem,92vw)] rounded-xl p-4" onClose={props.onClose}>
      <form onSubmit={remove}>
        <h2 className="mb-1 font-semibold">{t.deleteTitle}</h2>
        <p className="text-dim">{t.deleteText}</p>
        {error !== '' && (
          <p role="alert" className="mt-2 text-bad">
            {error}
          </p>
        )}
        <Choices confirm={t.delete} onClose={props.onClose} />
      </form>
    </Dialog>
  );
}

function Choices({ confirm, onClose }: { confirm: string; onClose: () => void }) {
  const t = useMessages();
  return (
    <div className="mt-4 flex justify-end gap-2">
      <button type="button" onClick={onClose} className="rounded-lg px-3 py-1.5 hover:bg-hover">
        {t.cancel}
      </button>
      <button type="submit" className="rounded-lg bg-accent px-3 py-1.5 font-medium text-on-accent">
        {confirm}
      </button>
    </div>
  );
}
