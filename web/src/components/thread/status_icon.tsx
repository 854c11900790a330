import type { Status } from '../../stream/events';
import { useMessages } from '../../i18n/catalog';
import type { RunStatus } from '../../i18n/run_texts';
import { useRunMessages } from '../../i18n/runs';

type Shown = Status | 'incomplete';

const GLYPHS: Record<Shown, { glyph: string; tone: string }> = {
  queued: { glyph: '○', tone: 'text-dim' },
  running: { glyph: '●', tone: 'text-accent pulse' },
  waiting: { glyph: '?', tone: 'text-warn' },
  completed: { glyph: '✓', tone: 'text-ok' },
  incomplete: { glyph: '⚠', tone: 'text-warn' },
  failed: { glyph: '✕', tone: 'text-bad' },
  cancelled: { glyph: '■', tone: 'text-dim' },
};

/** Return how the state of a run or task is shown, in every place: its icon and its words. */
export function useStatusView(): (run: RunStatus) => { shown: Shown; text: string } {
  const t = useMessages();
  const runs = useRunMessages();
  return (run) => {
    if (run.status === 'waiting' && run.reason === 'await_tasks') return { shown: 'running', text: t.awaitsTasks };
    const exception = runs?.exception(run) ?? '';
    if (exception !== '') return { shown: 'incomplete', text: exception };
    return { shown: run.status, text: t.status[run.status] };
  };
}

/** The icon of the state of a run or task, with its words for screen readers unless they are beside it. */
export function StatusIcon({ run, isLabelled = false }: { run: RunStatus; isLabelled?: boolean }) {
  const { shown, text } = useStatusView()(run);
  const { glyph, tone } = GLYPHS[shown];
  return (
    <span className={`glyph ${tone}`} title={shown === 'incomplete' ? text : undefined}>
      <span aria-hidden="true">{glyph}</span>
      {isLabelled && <span className="sr-only">{text}</span>}
    </span>
  );
}
