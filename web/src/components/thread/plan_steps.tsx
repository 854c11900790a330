import { useRunMessages } from '../../i18n/runs';
import type { RunMessages } from '../../i18n/run_texts';
import type { Plan } from '../../stream/events';
import type { PlanLine, Step } from '../../state/session_state';
import { toStep } from '../../state/thread_builder';

const STEP_ICONS: Record<Step['status'], { icon: string; tone: string }> = {
  pending: { icon: '○', tone: 'text-dim' },
  in_progress: { icon: '●', tone: 'text-accent' },
  completed: { icon: '✓', tone: 'text-ok' },
  failed: { icon: '✕', tone: 'text-bad' },
  skipped: { icon: '·', tone: 'text-dim' },
};
const NOT_REPORTED = { icon: '?', tone: 'text-warn' };

/** A proposed plan: its goal and its numbered steps. */
export function PlanView({ plan }: { plan: Plan }) {
  return (
    <>
      <p className="isolate-text mb-1 font-medium break-words">{plan.goal}</p>
      <Author byLarkspur={plan.made_by === 'larkspur'} />
      <Steps steps={plan.steps.map(toStep)} plain />
    </>
  );
}

/** The steps of a plan with their status. After the end of its run, some were not reported. */
export function PlanSteps({ plan, isOver }: { plan: PlanLine; isOver: boolean }) {
  return (
    <>
      <Author byLarkspur={plan.byLarkspur} />
      <Steps steps={plan.steps} isOver={isOver} />
    </>
  );
}

function Author({ byLarkspur }: { byLarkspur: boolean }) {
  const runs = useRunMessages();
  return byLarkspur ? <p className="mb-1 text-[13px] text-warn">{runs?.planByLarkspur}</p> : null;
}

/** The steps of a plan with their status; `plain` ones with their number. */
function Steps({ steps, plain = false, isOver = false }: { steps: readonly Step[]; plain?: boolean; isOver?: boolean }) {
  const runs = useRunMessages();
  return (
    <ol>
      {steps.map((step, at) => {
        const isOpen = step.status === 'pending' || step.status === 'in_progress';
        const { icon, tone } = isOver && isOpen ? NOT_REPORTED : STEP_ICONS[step.status];
        const remarks = runs === null || plain ? '' : remarksOf(step, isOver && isOpen, runs);
        return (
          <li key={step.id} className="flex gap-1 py-0.5">
            {plain ? (
              <span className="w-5 flex-none text-right text-dim tabular-nums" aria-hidden="true">
                {at + 1}
              </span>
            ) : (
              <span className={`glyph h-[21px] items-center ${tone}`} aria-hidden="true">
                {icon}
              </span>
            )}
            <span
              className={`isolate-text min-w-0 break-words whitespace-pre-line ${plain ? 'pl-1' : ''} ${!plain && (step.status === 'pending' || step.status === 'skipped') ? 'text-dim' : ''}`}
            >
              {step.description}
              {!plain && !(isOver && isOpen) && <span className="sr-only"> ({step.status})</span>}
              {remarks !== '' && <span className="block text-[13px] text-dim">{remarks}</span>}
            </span>
          </li>
        );
      })}
    </ol>
  );
}

function remarksOf(step: Step, isUnreported: boolean, runs: RunMessages): string {
  const remarks = [
    isUnreported ? runs.notReported : '',
    step.byLarkspur ? runs.stepByLarkspur : '',
    step.criteria === '' ? '' : runs.criteria(step.criteria.replaceAll('\n', '; ')),
  ];
  return remarks.filter((remark) => remark !== '').join(' · ');
}

export function stepProgress(steps: readonly Step[]): string {
  return `${steps.filter((step) => step.status === 'completed').length}/${steps.length}`;
}
