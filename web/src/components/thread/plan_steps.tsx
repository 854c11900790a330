import type { Step } from '../../state/session_state';

const STEP_LOOK: Record<Step['status'], { glyph: string; tone: string }> = {
  pending: { glyph: '○', tone: 'text-dim' },
  in_progress: { glyph: '●', tone: 'text-accent' },
  completed: { glyph: '✓', tone: 'text-ok' },
  failed: { glyph: '✕', tone: 'text-bad' },
  skipped: { glyph: '·', tone: 'text-dim' },
};

/** The steps of a plan; `plain` ones have numbers, as nothing is done yet. */
export function Steps({ steps, plain = false }: { steps: readonly Step[]; plain?: boolean }) {
  return (
    <ol>
      {steps.map((step, at) => (
        <li key={step.id} className="flex gap-1 py-0.5">
          {plain ? (
            <span className="w-5 flex-none text-right text-dim tabular-nums" aria-hidden="true">
              {at + 1}
            </span>
          ) : (
            <span className={`glyph h-[21px] items-center ${STEP_LOOK[step.status].tone}`} aria-hidden="true">
              {STEP_LOOK[step.status].glyph}
            </span>
          )}
          <span
            className={`isolate-text min-w-0 break-words whitespace-pre-line ${plain ? 'pl-1' : ''} ${!plain && (step.status === 'pending' || step.status === 'skipped') ? 'text-dim' : ''}`}
          >
            {step.description}
            {!plain && <span className="sr-only"> ({step.status})</span>}
          </span>
        </li>
      ))}
    </ol>
  );
}

export function stepProgress(steps: readonly Step[]): string {
  return `${steps.filter((step) => step.status === 'completed').length}/${steps.length}`;
}
