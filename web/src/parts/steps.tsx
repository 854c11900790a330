import type { Step } from '../state';

const STEP_LOOK: Record<Step['status'], { glyph: string; tone: string }> = {
  pending: { glyph: '○', tone: 'text-dim' },
  in_progress: { glyph: '●', tone: 'text-accent' },
  completed: { glyph: '✓', tone: 'text-ok' },
  failed: { glyph: '✕', tone: 'text-bad' },
  skipped: { glyph: '·', tone: 'text-dim' },
};

export function Steps({ steps }: { steps: readonly Step[] }) {
  return (
    <ol>
      {steps.map((step) => (
        <li key={step.id} className="flex gap-1 py-0.5">
          <span className={`glyph h-[21px] items-center ${STEP_LOOK[step.status].tone}`} aria-hidden="true">
            {STEP_LOOK[step.status].glyph}
          </span>
          <span className={`min-w-0 break-words ${step.status === 'pending' || step.status === 'skipped' ? 'text-dim' : ''}`}>
            {step.description}
            <span className="sr-only"> ({step.status})</span>
          </span>
        </li>
      ))}
    </ol>
  );
}

export function doneOf(steps: readonly Step[]): string {
  return `${steps.filter((step) => step.status === 'completed').length}/${steps.length}`;
}
