/** An open question with its answers: the same layout for plans, permissions and questions. */
import { useEffect, useState, type ReactNode } from 'react';
import { iconOf, answerLabel, questionTitle, answererName, type Question } from '../../state/questions';
import { formatTime } from '../../lib/format';
import { formatUntil } from '../../lib/relative_time';
import { usePreferences } from '../../state/preferences';
import { useAnswer } from '../../state/answers';
import type { AnswerNotice } from '../../state/open_questions';
import { useMessages } from '../../i18n/catalog';
import { useDecisionMessages } from '../../i18n/decision';
import { useRunMessages } from '../../i18n/runs';
import type { DecisionProps } from './choices';
import { ClarifyChoices } from './clarify';
import { PermissionChoices } from './permission';
import { PermissionCalls } from './permission_calls';
import { PlanView } from '../thread/plan_steps';
import { PlanChoices } from './plan_review';

/** A new question ignores keys and clicks for this time: they were meant for something else. */
const GUARD_MS = 400;
/** A longer question is shown as text instead of as the title. */
const MAX_TITLE_CHARS = 160;

export function Decision(props: {
  question: Question;
  mayAnswer: boolean;
  active: boolean;
  heading?: ReactNode;
}) {
  const { question, mayAnswer } = props;
  const t = useMessages();
  const d = useDecisionMessages();
  const { answer, busy, failure } = useAnswer(question.id);
  const [excluded, setExcluded] = useState<ReadonlySet<string>>(new Set());
  const [isEditing, setIsEditing] = useState(false);
  const isReady = useIsReady();
  const decisionProps: DecisionProps = {
    question,
    active: props.active && mayAnswer,
    disabled: busy || !isReady,
    answer: (input) => void answer(input),
    onEditing: setIsEditing,
  };
  const text = [isLong(question) ? question.title : '', question.body].join('\n\n').trim();
  const toggleCall = (call: string) => setExcluded(toggled(excluded, call));
  return (
    <div className="flex min-h-0 flex-col gap-2.5" aria-busy={busy}>
      {props.heading}
      {!isEditing && (
        <div role="region" tabIndex={0} aria-label={t.question} className="min-h-0 overflow-y-auto rounded-lg empty:hidden">
          {text !== '' && <p className="isolate-text break-words whitespace-pre-wrap">{text}</p>}
          {question.kind === 'approval' && (
            <PermissionCalls calls={question.calls} excluded={excluded} {...(mayAnswer && { onToggleCall: toggleCall })} />
          )}
          {question.plan !== null && <PlanView plan={question.plan} />}
        </div>
      )}
      {mayAnswer && (
        <div className="flex-none">
          {question.kind === 'approval' && <PermissionChoices {...decisionProps} excluded={excluded} onToggleCall={toggleCall} />}
          {question.plan !== null && <PlanChoices {...decisionProps} plan={question.plan} />}
          {question.plan === null && question.calls.length === 0 && <ClarifyChoices {...decisionProps} />}
        </div>
      )}
      {failure !== '' && (
        <p role="alert" className="isolate-text flex-none break-words text-bad">
          {failure}
        </p>
      )}
      <p className="flex flex-none flex-wrap gap-x-1.5 text-xs text-dim">
        <span>{mayAnswer ? d.who[question.who] : d.notYours}</span>
        <span aria-hidden="true">·</span>
        <Expiry time={question.expires} />
      </p>
    </div>
  );
}

/** The title of a question; `children` are shown at its end. */
export function DecisionTitle({ question, children }: { question: Question; children?: ReactNode }) {
  const t = useMessages();
  const runs = useRunMessages();
  return (
    <div className="flex flex-none items-start gap-1.5">
      <span className="glyph h-[21px] items-center font-semibold text-warn" aria-hidden="true">
        {iconOf(question.kind)}
      </span>
      <div role="status" className="min-w-0 flex-1">
        <h2 className="isolate-text font-semibold break-words whitespace-pre-wrap">
          {isLong(question) ? t.question : questionTitle(question, t, runs, true)}
        </h2>
      </div>
      {children}
    </div>
  );
}

/** Tells who answered a question elsewhere, where and how. */
export function AnswerNoticeView({ notice: { question, answer, time } }: { notice: AnswerNotice }) {
  const t = useMessages();
  const d = useDecisionMessages();
  const runs = useRunMessages();
  const language = usePreferences((preferences) => preferences.language);
  const via = t.channels[answer.answered_via as keyof typeof t.channels] ?? answer.answered_via;
  const by = answer.decision === 'expired' ? d.nobody : d.answeredBy(answererName(answer, t), via);
  return (
    <p role="status" className="flex items-start gap-1.5 text-dim">
      <span className="glyph h-[21px] items-center" aria-hidden="true">
        {answer.decision === 'reject' || answer.decision === 'expired' ? '✕' : '✓'}
      </span>
      <span className="isolate-text line-clamp-3 min-w-0 flex-1 break-words">
        <span className="text-ink">{questionTitle(question, t, runs)}</span>
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
  const d = useDecisionMessages();
  const language = usePreferences((preferences) => preferences.language);
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 20_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={time} title={new Date(time).toLocaleString(language)}>
      {d.expires(formatUntil(time, now, language))}
    </time>
  );
}

function useIsReady(): boolean {
  const [isReady, setIsReady] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsReady(true), GUARD_MS);
    return () => clearTimeout(timer);
  }, []);
  return isReady;
}

function isLong(question: Question): boolean {
  // calls are shown in full below their title
  return question.kind !== 'plan' && question.calls.length === 0 && question.reasonCode === '' && question.title.length > MAX_TITLE_CHARS;
}

function toggled(set: ReadonlySet<string>, item: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(item)) next.add(item);
  return next;
}
