/** One decision bar for whatever waits: the same for a plan, a permission and a question. */
import { useEffect, useState, type ReactNode } from 'react';
import { glyphOf, howOf, titleOf, whoOf, type Given, type Question } from '../asking';
import { formatTime, formatUntil } from '../formats';
import { usePreferences } from '../preferences';
import { useAnswering, type Note } from '../waiting';
import { useWords } from '../words';
import { ClarifyChoices } from './clarify';
import { PermissionBody, PermissionChoices } from './permission';
import { PlanBody, PlanChoices } from './review';

/** What the choices of every kind are given. */
export interface Deciding {
  question: Question;
  /** Keys are for this question. */
  active: boolean;
  disabled: boolean;
  answer: (given: Given) => void;
  /** The body makes room while the plan is edited. */
  onEditing: (edits: boolean) => void;
}

/** A question that has just come takes no answer: the key or click was meant for something else. */
const ARMED_MS = 400;
/** A question of so many characters is a text rather than a title. */
const LONG_TITLE = 160;

export function Decision(props: {
  question: Question;
  mayAnswer: boolean;
  active: boolean;
  heading?: ReactNode;
}) {
  const { question, mayAnswer } = props;
  const words = useWords();
  const { answer, busy, trouble } = useAnswering(question.id);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [edits, setEdits] = useState(false);
  const armed = useArmed();
  const deciding: Deciding = {
    question,
    active: props.active && mayAnswer,
    disabled: busy || !armed,
    answer: (given) => void answer(given),
    onEditing: setEdits,
  };
  const text = [isLong(question) ? question.title : '', question.body].join('\n\n').trim();
  const leave = (call: string) => setLeft(toggled(left, call));
  return (
    <div className="flex min-h-0 flex-col gap-2.5" aria-busy={busy}>
      {props.heading}
      {!edits && (
        <div role="region" tabIndex={0} aria-label={words.question} className="min-h-0 overflow-y-auto rounded-lg empty:hidden">
          {text !== '' && <p className="isolate-text break-words whitespace-pre-wrap">{text}</p>}
          {question.kind === 'approval' && (
            <PermissionBody calls={question.calls} left={left} {...(mayAnswer && { onLeave: leave })} />
          )}
          {question.plan !== null && <PlanBody plan={question.plan} />}
        </div>
      )}
      {mayAnswer && (
        <div className="flex-none">
          {question.kind === 'approval' && <PermissionChoices {...deciding} left={left} onLeave={leave} />}
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
        <span>{mayAnswer ? words.who[question.who] : words.notYours}</span>
        <span aria-hidden="true">·</span>
        <Expiry time={question.expires} />
      </p>
    </div>
  );
}

/** The first line of a bar: what is asked, and of how many. */
export function DecisionTitle({ question, children }: { question: Question; children?: ReactNode }) {
  const words = useWords();
  return (
    <div className="flex flex-none items-start gap-1.5">
      <span className="glyph h-[21px] items-center font-semibold text-warn" aria-hidden="true">
        {glyphOf(question.kind)}
      </span>
      <div role="status" className="min-w-0 flex-1">
        <h2 className="isolate-text font-semibold break-words whitespace-pre-wrap">
          {isLong(question) ? words.question : titleOf(question, words)}
        </h2>
      </div>
      {children}
    </div>
  );
}

/** Who has answered elsewhere, where and how. */
export function Answered({ note: { question, answer, time } }: { note: Note }) {
  const words = useWords();
  const language = usePreferences((one) => one.language);
  const via = words.channels[answer.answered_via as keyof typeof words.channels] ?? answer.answered_via;
  const by = answer.decision === 'expired' ? words.nobody : words.answeredBy(whoOf(answer), via);
  return (
    <p role="status" className="flex items-start gap-1.5 text-dim">
      <span className="glyph h-[21px] items-center" aria-hidden="true">
        {answer.decision === 'reject' || answer.decision === 'expired' ? '✕' : '✓'}
      </span>
      <span className="isolate-text line-clamp-3 min-w-0 flex-1 break-words">
        <span className="text-ink">{titleOf(question, words)}</span>
        {' '}
        {by} · {howOf(question.kind, answer, words)}
      </span>
      <time dateTime={time} className="flex-none text-xs leading-[21px] tabular-nums">
        {formatTime(time, language)}
      </time>
    </p>
  );
}

function Expiry({ time }: { time: string }) {
  const words = useWords();
  const language = usePreferences((one) => one.language);
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 20_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={time} title={new Date(time).toLocaleString(language)}>
      {words.expires(formatUntil(time, now, language))}
    </time>
  );
}

function useArmed(): boolean {
  const [armed, setArmed] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setArmed(true), ARMED_MS);
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
