import { Check, Copy, PlayCircle, RefreshCw } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { api } from '../../api/client';
import { useMessages } from '../../i18n/catalog';
import { useRunActionMessages } from '../../i18n/run_actions';
import { usePreferences } from '../../state/preferences';
import type { EndLine, State } from '../../state/session_state';
import { useSessionStore } from '../../state/session_store';
import { randomId } from '../../stream/shared_stream';

const COPIED_MS = 1_500;

/** What can be done with a run that has ended. */
export function RunActions({ line }: { line: EndLine }) {
  const t = useMessages();
  const a = useRunActionMessages();
  const isLast = useSessionStore((store) => store.state.runs.at(-1)?.run === line.run);
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const [copied, setCopied] = useState(false);
  const answer = useSessionStore((store) => answerOf(store.state, line));

  const attempt = async (work: () => Promise<unknown>) => {
    setBusy(true);
    setFailure('');
    try {
      await work();
    } catch (error) {
      setFailure((error as Error).message || t.unreachable);
    } finally {
      setBusy(false);
    }
  };
  const copy = () =>
    attempt(async () => {
      await navigator.clipboard.writeText(answer);
      setCopied(true);
      setTimeout(() => setCopied(false), COPIED_MS);
    });
  const retry = () =>
    attempt(async () => {
      const { session, state } = useSessionStore.getState();
      const input = state.thread.lines.find((one) => one.kind === 'input' && one.run === line.run);
      if (session === null || input?.kind !== 'input') return;
      await api.submit({
        task: input.text,
        session_id: session,
        attachments: input.attachments.map(({ name, media_type, uri }) => ({ name, media_type, uri })),
        idempotency_key: randomId(),
        options: { permission_mode: usePreferences.getState().mode },
      });
    });
  const resume = () =>
    attempt(async () => {
      const run = useSessionStore.getState().state.runs.find((one) => one.run === line.run);
      if (run !== undefined) await api.resume(run.task);
    });
  const isOver = line.status === 'completed';
  return (
    <span className="inline-flex flex-wrap items-center gap-1">
      {answer !== '' && (
        <Action icon={copied ? <Check size={13} /> : <Copy size={13} />} name={copied ? a.copied : a.copy} busy={busy} onClick={copy} quiet />
      )}
      {!isOver && isLast && (
        <>
          <Action icon={<PlayCircle size={13} />} name={a.resume} title={a.resumeHint} busy={busy} onClick={resume} />
          <Action icon={<RefreshCw size={13} />} name={a.retry} title={a.retryHint} busy={busy} onClick={retry} />
        </>
      )}
      {failure !== '' && (
        <span role="alert" className="text-bad">
          {failure}
        </span>
      )}
    </span>
  );
}

/** Return the answer of a run as Markdown, "" without one. */
function answerOf(state: State, end: EndLine): string {
  if (end.answer.trim() !== '') return end.answer;
  const said = state.thread.lines.findLast((line) => line.run === end.run && line.kind === 'say');
  return end.status === 'completed' && said?.kind === 'say' ? said.text : '';
}

/** A button; a `quiet` one shows its name to screen readers and as a tooltip only. */
function Action(props: { icon: ReactNode; name: string; title?: string; busy: boolean; quiet?: boolean; onClick: () => void }) {
  return (
    <button
      type="button"
      disabled={props.busy}
      title={props.title ?? props.name}
      aria-label={props.name}
      onClick={props.onClick}
      className={props.quiet ? 'bar-button h-7! w-7!' : 'choice min-h-7! py-0!'}
    >
      <span aria-hidden="true">{props.icon}</span>
      {!props.quiet && props.name}
    </button>
  );
}
