import { Plus, X } from 'lucide-react';
import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import type { Plan } from '../../stream/events';
import { useDecisionMessages } from '../../i18n/decision';
import { FieldActions, isComposing } from './choices';

const MAX_STEPS = 50;
const FIELD =
  'isolate-text field-sizing-content block min-h-8 w-full min-w-0 flex-1 resize-none rounded-lg border border-line bg-bg px-2.5 py-1';

interface Row {
  id: number;
  text: string;
}

/** Edits the goal and steps of a plan. Enter adds a step, Alt+↑↓ moves it, Ctrl+Enter saves. */
export function PlanEditor(props: {
  plan: Plan;
  disabled: boolean;
  onSend: (edit: { steps: string[]; goal: string }) => void;
  onCancel: () => void;
}) {
  const { plan, onCancel } = props;
  const d = useDecisionMessages();
  const [goal, setGoal] = useState(plan.goal);
  const [rows, setRows] = useState<Row[]>(() => plan.steps.map((step, id) => ({ id, text: step.description })));
  const [focus, setFocus] = useState(rows[0]?.id ?? 0);
  const next = useRef(rows.length);
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    list.current?.querySelector<HTMLElement>(`[data-row="${focus}"]`)?.focus();
  }, [focus]);

  const steps = rows.map((row) => row.text.trim()).filter((text) => text !== '');
  const fits = steps.length > 0 && !props.disabled;
  const send = () => fits && props.onSend({ steps, goal: goal.trim() });
  const add = (behind: number) => {
    if (rows.length >= MAX_STEPS) return;
    const id = next.current;
    next.current += 1;
    setRows(rows.toSpliced(behind + 1, 0, { id, text: '' }));
    setFocus(id);
  };
  const remove = (at: number) => {
    if (rows.length === 1) return;
    setRows(rows.toSpliced(at, 1));
    setFocus(rows[at === 0 ? 1 : at - 1]?.id ?? 0);
  };
  const move = (at: number, by: number) => {
    const row = rows[at];
    if (row !== undefined && rows[at + by] !== undefined) setRows(rows.toSpliced(at, 1).toSpliced(at + by, 0, row));
  };
  /** Handle the keys that all fields have in common; return true if the key was one of them. */
  const common = (event: KeyboardEvent): boolean => {
    if (isComposing(event)) return true;
    if (event.key === 'Escape') onCancel();
    else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  const press = (at: number) => (event: KeyboardEvent) => {
    if (common(event)) return;
    const empty = rows[at]?.text === '';
    if (event.key === 'Enter' && !event.shiftKey) add(at);
    else if (event.key === 'Backspace' && empty) remove(at);
    else if (event.altKey && event.key === 'ArrowUp') move(at, -1);
    else if (event.altKey && event.key === 'ArrowDown') move(at, 1);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div className="-mx-1 max-h-[40dvh] overflow-y-auto px-1 py-0.5">
        <label className="mb-2 block">
          <span className="mb-1 block text-xs text-dim">{d.goal}</span>
          <textarea rows={1} dir="auto" value={goal} onChange={(event) => setGoal(event.target.value)} onKeyDown={common} className={FIELD} />
        </label>
        <ol ref={list} className="flex flex-col gap-1">
          {rows.map((row, at) => (
            <li key={row.id} className="flex items-start gap-1.5">
              <span aria-hidden="true" className="w-5 flex-none text-right text-[13px] leading-8 text-dim tabular-nums">
                {at + 1}
              </span>
              <textarea
                data-row={row.id}
                rows={1}
                dir="auto"
                aria-label={d.step(at + 1)}
                value={row.text}
                onChange={(event) => setRows(rows.with(at, { ...row, text: event.target.value }))}
                onFocus={() => setFocus(row.id)}
                onKeyDown={press(at)}
                className={FIELD}
              />
              <button
                type="button"
                disabled={rows.length === 1}
                aria-label={d.removeStep(at + 1)}
                title={d.removeStep(at + 1)}
                onClick={() => remove(at)}
                className="bar-button"
              >
                <X size={14} aria-hidden="true" />
              </button>
            </li>
          ))}
        </ol>
        <button type="button" onClick={() => add(rows.length - 1)} className="mt-1 ml-[1.625rem] flex items-center gap-1 rounded-lg px-2 py-1 text-[13px] text-accent hover:bg-hover">
          <Plus size={14} aria-hidden="true" />
          {d.addStep}
        </button>
      </div>
      <FieldActions label={d.savePlan} keys="ctrl ↵" disabled={!fits} onSend={send} onCancel={onCancel} />
    </>
  );
}
