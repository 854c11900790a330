/** One decision bar for whatever waits: the same for a plan, a permission and a question. */
import { useEffect, useState, type ReactNode } from 'react';
import { iconOf, answerLabel, questionTitle, answererName, type Given, type Question } from '../../state/questions';
import { formatTime, formatUntil } from '../../lib/format';
import { usePreferences } from '../../state/preferences';
import { useAnswer, type AnswerNotice } from '../../state/open_questions';
import { useMessages } from '../../i18n/catalog';
import { ClarifyChoices } from './clarify';
import { PermissionCalls, PermissionChoices } from './permission';
import { PlanView, PlanChoices } from './plan_review';

/** What the choices of every kind are given. */
export interface DecisionProps {
  question: Question;
  /** ShortcutsDialog are for this question. */
  active: boolean;
  disabled: boolean;
  answer: (given: Given) => void;
  /** The body makes room while the plan is edited. */
  onEditing: (edits: boolean) => void;
}

/** A question that has just come takes no answer: the key or click was meant for something else. */
const GUARD_MS = 400;
/** A question of so many characters is a text rather than a title. */
const LONG_TITLE = 160;

export function Decision(props: {
  question: Question;
  mayAnswer: boolean;
  active: boolean;
  heading?: ReactNode;
}) {
  const { question, mayAnswer } = props;
  const t = useMessages();
  const { answer, busy, trouble } = useAnswer(question.id);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [edits, setEdits] = useState(false);
  const armed = useIsArmed();
  const deciding: DecisionProps = {
    question,
    active: props.active && mayAnswer,
    disabled: busy || !armed,
    answer: (given) => void answer(given),
    onEditing: setEdits,
  };
  const text = [isLong(question) ? question.title : '', question.body].join('\n\n').trim();
  const toggleCall = (call: string) => setLeft(toggled(left, call));
  return (
    <div className="flex min-h-0 flex-col gap-2.5" aria-busy={busy}>
      {props.heading}
      {!edits && (
        <div role="region" tabIndex={0} aria-label={t.question} className="min-h-0 overflow-y-auto rounded-lg empty:hidden">
          {text !== '' && <p className="isolate-text break-words whitespace-pre-wrap">{text}</p>}
          {question.kind === 'approval' && (
            <PermissionCalls calls={question.calls} left={left} {...(mayAnswer && { onToggleCall: toggleCall })} />
          )}
          {question.plan !== null && <PlanView plan={question.plan} />}
        </div>
      )}
      {mayAnswer && (
        <div className="flex-none">
          {question.kind === 'approval' && <PermissionChoices {...deciding} left={left} onToggleCall={toggleCall} />}
          {question.kind === 'plan' && question.plan !== null && <PlanChoices {...deciding} plan={question.plan} />}
          {question.kind === 'clarify' && <ClarifyChoices {...deciding} />}
        </div>
      )}
      {trouble !== '' && (
        <p role="alert" className="isolate-text flex-none break-words text-bad">
          {trouble}
        </p>
      )}
      <p className="flex flex-none flex-wrap gap-x-1.5 text-xs text-dim">
        <span>{mayAnswer ? t.who[question.who] : t.notYours}</span>
        <span aria-hidden="true">·</span>
        <Expiry time={question.expires} />
      </p>
    </div>
  );
}

/** The first line of a bar: what is asked, and of how many. */
export function DecisionTitle({ question, children }: { question: Question; children?: ReactNode }) {
  const t = useMessages();
  return (
    <div className="flex flex-none items-start gap-1.5">
      <span className="glyph h-[21px] items-center font-semibold text-warn" aria-hidden="true">
        {iconOf(question.kind)}
      </span>
      <div role="status" className="min-w-0 flex-1">
        <h2 className="isolate-text font-semibold break-words whitespace-pre-wrap">
          {isLong(question) ? t.question : questionTitle(question, t)}
        </h2>
      </div>
      {children}
    </div>
  );
}

/** Who has answered elsewhere, where and how. */
export function Answered({ note: { question, answer, time } }: { note: AnswerNotice }) {
  const t = useMessages();
  const language = usePreferences((one) => one.language);
  const via = t.channels[answer.answered_via as keyof typeof t.channels] ?? answer.answered_via;
  const by = answer.decision === 'expired' ? t.nobody : t.answeredBy(answererName(answer), via);
  return (
    <p role="status" className="flex items-start gap-1.5 text-dim">
      <span className="glyph h-[21px] items-center" aria-hidden="true">
        {answer.decision === 'reject' || answer.decision === 'expired' ? '✕' : '✓'}
      </span>
      <span className="isolate-text line-clamp-3 min-w-0 flex-1 break-words">
        <span className="text-ink">{questionTitle(question, t)}</span>
        {' '}
        {by} · {answerLabel(question.kind, answer, t)}
      </span>
      <time dateTime={time} className="flex-none text-xs leading-[21px] tabular-nums">
        {formatTime(time, language)}
      </time>
    </p>
  );
}

function Expiry({ time }: { time: string }) {
  const t = useMessages();
  const language = usePreferences((one) => one.language);
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 20_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={time} title={new Date(time).toLocaleString(language)}>
      {t.expires(formatUntil(time, now, language))}
    </time>
  );
}

function useIsArmed(): boolean {
  const [armed, setArmed] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setArmed(true), GUARD_MS);
    return () => clearTimeout(timer);
  }, []);
  return armed;
}

function isLong(question: Question): boolean {
  return question.kind === 'clarify' && question.title.length > LONG_TITLE;
}

function toggled(set: ReadonlySet<string>, one: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(one)) next.add(one);
  return next;
}
