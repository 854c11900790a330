import { Folder, Menu, PanelRight, Pencil, Trash2 } from 'lucide-react';
import { Suspense, useState } from 'react';
import type { MeView } from '../../api/client';
import { useSessionStore } from '../../state/session_store';
import { activeRun } from '../../state/event_reducer';
import type { State } from '../../state/session_state';
import { useWaitingCount } from '../../state/open_questions';
import { useMessages } from '../../i18n/catalog';
import { lazyComponent } from '../../lib/lazy';
import { useTaskOptions } from '../../state/task_options';
import { useListed, useTitle } from '../../state/sessions';
import { StatusIcon, useStatusView } from '../thread/status_icon';

const SessionDialog = lazyComponent(() => import('./session_dialog').then((module) => module.SessionDialog));

function runOf(state: State) {
  return activeRun(state) ?? state.runs.at(-1);
}

export function Header(props: {
  session: string | null;
  me: MeView | undefined;
  onMenu: () => void;
  onPanel: () => void;
}) {
  const t = useMessages();
  const title = useTitle(props.session);
  const workspace = useListed(props.session)?.workspace ?? '';
  const run = useSessionStore((store) => runOf(store.state));
  const statusView = useStatusView();
  const model = useSessionStore((store) => lastModel(store.state)) || props.me?.model;
  const chosen = useTaskOptions(props.session ?? 'new');
  const network = (chosen.network || props.me?.network) as MeView['network'];
  const [dialog, setDialog] = useState<'none' | 'rename' | 'delete'>('none');
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
        <span className="flex flex-none max-[719px]:hidden">
          <button type="button" className="bar-button h-7! w-7!" title={t.rename} aria-label={t.rename} onClick={() => setDialog('rename')}>
            <Pencil size={13} aria-hidden="true" />
          </button>
          <button type="button" className="bar-button h-7! w-7!" title={t.delete} aria-label={t.delete} onClick={() => setDialog('delete')}>
            <Trash2 size={13} aria-hidden="true" />
          </button>
        </span>
      )}
      <span className="ml-auto flex flex-none items-center gap-2 text-dim">
        {workspace !== '' && (
          <span title={workspace} className="hidden max-w-48 items-center gap-1 sm:flex">
            <Folder size={13} aria-hidden="true" className="flex-none" />
            <span className="sr-only">{t.folder}</span>
            <span className="truncate">{workspace.split('/').findLast((part) => part !== '') ?? '/'}</span>
          </span>
        )}
        {props.me !== undefined && (
          <span title={props.me.isolated ? t.isolatedHelp : t.notIsolatedHelp} className="hidden lg:inline">
            {props.me.isolated ? t.isolated[network] : t.notIsolated}
          </span>
        )}
        {chosen.profile !== '' && <span className="hidden sm:inline">{chosen.profile}</span>}
        <span className="max-w-24 truncate sm:max-w-48">{model}</span>
        {run !== undefined && props.session !== null && (
          <span data-testid="status" className="flex items-center">
            <StatusIcon run={run} />
            {statusView(run).text}
          </span>
        )}
      </span>
      {props.session !== null && (
        <button type="button" className="bar-button" title={t.panel} aria-label={t.panel} onClick={props.onPanel}>
          <PanelRight size={17} aria-hidden="true" />
        </button>
      )}
      {dialog !== 'none' && props.session !== null && (
        <Suspense fallback={null}>
          <SessionDialog kind={dialog} session={props.session} title={title} onClose={() => setDialog('none')} />
        </Suspense>
      )}
    </header>
  );
}

/** Marks the menu button while questions are open. */
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
