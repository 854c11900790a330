/** Questions and their texts, from the event stream or the list of open questions. */
import type { QuestionView } from '../api/client';
import type { ApprovalItem, Envelope, Plan, QuestionAnswered, QuestionAsked } from '../stream/events';
import type { Messages } from '../i18n/catalog';
import type { Action, SubtaskPlace } from '../i18n/en';
import type { RunMessages } from '../i18n/run_texts';
import { LOCAL_OWNER } from '../lib/owner';

export interface Question {
  id: string;
  run: string;
  session: string;
  kind: QuestionAsked['kind'];
  title: string;
  body: string;
  options: readonly string[];
  multiple: boolean;
  calls: readonly ApprovalItem[];
  plan: Plan | null;
  who: QuestionView['who'];
  expires: string;
  /** Why a run cannot continue by itself, "" for other questions. */
  reasonCode: string;
  /** The subtask that asks, null for the task itself. */
  asker: SubtaskPlace | null;
}

/** A question of the session. `answer` is null if its run ended without one. */
export interface SessionQuestion extends Question {
  closed: { time: string; answer: QuestionAnswered | null } | null;
}

/** The answer to a question. */
export type Answer = Pick<
  QuestionAnswered,
  'decision' | 'text' | 'items' | 'grant' | 'answered_by' | 'answered_name' | 'answered_via'
>;

export function toQuestion(view: QuestionView): Question {
  const { question_id: id, run_id: run, session_id: session } = view;
  const { kind, title, body, options, multiple, calls, plan, who, expires, reason_code: reasonCode } = view;
  return { id, run, session, kind, title, body, options, multiple, calls, plan, who, expires, reasonCode, asker: askerOf(view) };
}

/** Return the subtask that asks a question, null for the task itself. */
export function askerOf(asked: Pick<QuestionAsked, 'asked_by' | 'asker_number' | 'asker_role'>): SubtaskPlace | null {
  const { asked_by: path = '', asker_number: number = 0, asker_role: role = '' } = asked;
  return path === '' ? null : { number, role, path };
}

/** Return the questions after an event: asked, answered, or closed because their run ended. */
export function reduceQuestions(questions: readonly SessionQuestion[], event: Envelope): readonly SessionQuestion[] {
  const time = event.timestamp;
  switch (event.event) {
    case 'workflow.question.asked': {
      const { question_id: id, kind, title, body, options, expires_at: expires } = event.payload;
      const { calls = [], multiple = false, plan = null, who = 'operators', reason_code: reasonCode = '' } = event.payload;
      if (questions.some((one) => one.id === id)) return questions;
      const placed = { id, run: event.run_id, session: event.session_id, closed: null };
      const more = { options, multiple, calls, plan, who, expires, reasonCode, asker: askerOf(event.payload) };
      return [...questions, { ...placed, kind, title, body, ...more }];
    }
    case 'workflow.question.answered': {
      const { question_id: id } = event.payload;
      const closed = { time, answer: event.payload };
      return questions.map((one) => (one.id === id && one.closed === null ? { ...one, closed } : one));
    }
    case 'workflow.result.final':
    case 'workflow.result.cancelled': {
      const closes = (one: SessionQuestion) => one.run === event.run_id && one.closed === null;
      if (!questions.some(closes)) return questions;
      return questions.map((one) => (closes(one) ? { ...one, closed: { time, answer: null } } : one));
    }
    default:
      return questions;
  }
}

/** Return the icon of a question; the terminal uses the same ones. */
export function iconOf(kind: Question['kind']): string {
  if (kind === 'plan') return '▣';
  return kind === 'approval' ? '!' : '?';
}

/**
 * Return the title of a question, after the subtask that asks. `beside`: the calls are shown in full
 * beside it, so that it does not repeat a command.
 */
export function questionTitle(
  question: Pick<Question, 'kind' | 'title' | 'calls' | 'reasonCode' | 'asker'>,
  t: Messages,
  runs: RunMessages | null,
  beside = false,
): string {
  const [only] = question.calls;
  const isCommand = question.calls.length === 1 && only?.action === 'run';
  const title = beside && isCommand ? t.askCommand : plainTitle(question, t, runs);
  return question.asker === null ? title : `${t.subtask(question.asker)}: ${title}`;
}

function plainTitle(
  question: Pick<Question, 'kind' | 'title' | 'calls' | 'reasonCode'>,
  t: Messages,
  runs: RunMessages | null,
): string {
  if (question.kind === 'plan') return t.approvePlan;
  if (question.reasonCode !== '') return runs?.ended('error', question.reasonCode) ?? question.title;
  if (question.calls.length === 0) return question.title;
  const [first] = question.calls;
  if (first !== undefined && question.calls.length === 1) {
    return t.ask[first.action ?? 'use'](first.subject || first.tool);
  }
  const counts = new Map<Action, number>();
  for (const { action = 'use' } of question.calls) counts.set(action, (counts.get(action) ?? 0) + 1);
  return t.askSeveral([...counts]);
}

/** Return a one-line summary of a question: what its title does not say. */
export function summaryOf(question: Pick<Question, 'body' | 'calls' | 'plan'>): string {
  const [first] = question.calls;
  if (question.calls.length === 1 && first?.subject) return '';
  const calls = question.calls.map((call) => call.subject || call.what).join(' · ');
  return (calls || question.plan?.goal || question.body).slice(0, 300).replace(/\s+/g, ' ');
}

/** Return a short text for an answer. */
export function answerLabel(kind: Question['kind'], answer: Answer, t: Messages): string {
  const { decision, text = '', items = {}, grant = 'once' } = answer;
  const because = (how: string) => (text.trim() === '' ? how : `${how}: ${text}`);
  if (decision === 'expired') return t.how.expired;
  if (kind === 'plan') {
    return decision === 'text' ? because(t.how.feedback) : because(t.how[decision]);
  }
  if (kind !== 'approval') return text || (decision === 'reject' ? t.how.declined : t.how.goOn);
  const judged = Object.values(items);
  const yes = judged.filter(Boolean).length;
  if (decision === 'approve' && yes < judged.length) return because(t.how.some(yes, judged.length));
  return because(decision === 'approve' ? t.how[grant] : t.how.no);
}

/** Return the name of the person who answered. */
export function answererName(answer: Answer, t: Messages): string {
  if (answer.answered_by === LOCAL_OWNER) return t.you.toLowerCase();
  return answer.answered_name || answer.answered_by;
}
