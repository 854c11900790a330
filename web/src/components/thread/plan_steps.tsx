import type { Plan } from '../../stream/events';
import type { Step } from '../../state/session_state';

const STEP_ICONS: Record<Step['status'], { icon: string; tone: string }> = {
  pending: { icon: '○', tone: 'text-dim' },
  in_progress: { icon: '●', tone: 'text-accent' },
  completed: { icon: '✓', tone: 'text-ok' },
  failed: { icon: '✕', tone: 'text-bad' },
  skipped: { icon: '·', tone: 'text-dim' },
};

/** A proposed plan: its goal and its numbered steps. */
export function PlanView({ plan }: { plan: Plan }) {
  const steps = plan.steps.map(({ status = 'pending', ...step }) => ({ ...step, status }));
  return (
    <>
      <p className="isolate-text mb-1 font-medium break-words">{plan.goal}</p>
      <Steps steps={steps} plain />
    </>
  );
}

/** The steps of a plan with their status; `plain` ones with their number. */
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
            <span className={`glyph h-[21px] items-center ${STEP_ICONS[step.status].tone}`} aria-hidden="true">
              {STEP_ICONS[step.status].icon}
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
