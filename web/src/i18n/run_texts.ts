/** What runs say: the same sentences as in the terminal and in chats, in a chunk of their own. */
import en from '../../../internal/i18n/runs.en.json';
import zh from '../../../internal/i18n/runs.zh.json';
import { LOCAL_OWNER } from '../lib/owner';
import type { Payloads, Status } from '../stream/events';

/** `ended` has a sentence for each error code and reason; `details` is what an error adds to it. */
export interface RunMessages {
  startsOver: string;
  retry: (wait: Pick<Payloads['workflow.node.retry'], 'reason' | 'seconds' | 'attempt' | 'attempts' | 'cause'>) => string;
  /** How a command failed that could be run; "" if it did not. */
  callFailure: (call: { exit?: number; timedOut?: boolean }) => string;
  /** Which questions of a server nobody was asked during a call. */
  callRemarks: (call: { declined: readonly string[]; logged: readonly string[] }) => string[];
  /** Whether a run ended at a limit: it did not fail, and can go on. */
  isLimit: (reason: string) => boolean;
  /** Whether another key of the model may help. */
  needsKey: (code: string) => boolean;
  answeredBy: (fallback: { model: string; first: string }) => string;
  ended: (reason: string, code: string) => string;
  leftOut: (parts: LeftOut) => string;
  notRun: string;
  /** Why a call was not run. */
  whyNotRun: (reason: string) => string;
  completedWithout: (calls: number) => string;
  /** What an ended run lacks: it ended at a limit, or without its last calls; "" if its status says all. */
  exception: (run: RunStatus) => string;
  planByLarkspur: string;
  stepByLarkspur: string;
  notReported: string;
  criteria: (criteria: string) => string;
  details: (reason: string, code: string, error: string) => string;
  /** Why the answer of a person did not allow a call. */
  refusal: (refusal: { why: string; words: string }) => string;
  /** What stopped a call. */
  callStopped: (cause: string, by: string, principal: string) => string;
}

/** The state of a run or task as lists know it. `notRun` counts its last calls if they were not run. */
export interface RunStatus {
  status: Status;
  reason: string | null;
  notRun: number;
}

type LeftOut = Payloads['workflow.node.left_out'];

const QUIET = new Set(['final_answer', 'await_user_input', 'user_stop']);

/** The time of day of this browser at which daily limits reset: when a day of UTC begins. */
function dailyReset(): string {
  const begin = new Date();
  begin.setUTCHours(24, 0, 0, 0);
  return new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' }).format(begin);
}

function messagesOf({ messages, complete, limits, key_codes: keyCodes }: typeof en): RunMessages {
  const known = new Map(Object.entries(messages));
  const completedWithout = (calls: number) =>
    (calls === 1 ? messages.completed_not_run : messages.completed_not_run_many).replace('{count}', `${calls}`);
  return {
    startsOver: messages.starts_over,
    retry: ({ reason, seconds, attempt, attempts = 0, cause = '' }) => {
      const which = (attempts === 0 ? messages.attempt : messages.attempt_of)
        .replace('{attempts}', `${attempts}`)
        .replace('{attempt}', `${attempt}`);
      const sentence = messages[`retry_${reason}`].replace('{seconds}', `${seconds}`).replace('{attempt}', which);
      return cause === '' ? sentence : messages.retry_because.replace('{sentence}', sentence).replace('{cause}', () => cause);
    },
    callFailure: ({ exit, timedOut }) =>
      timedOut ? messages.call_timed_out : exit === undefined ? '' : messages.call_exit.replace('{code}', `${exit}`),
    callRemarks: ({ declined, logged }) =>
      ([[messages.call_declined, declined], [messages.call_logged, logged]] as const).flatMap(([sentence, reasons]) =>
        reasons.length > 0 ? [sentence.replace('{reason}', () => reasons.join('; '))] : [],
      ),
    isLimit: (reason) => limits.includes(reason),
    needsKey: (code) => keyCodes.includes(code),
    answeredBy: ({ model, first }) =>
      messages.answered_by.replace('{model}', () => model).replace('{instead_of}', () => first),
    ended: (reason, code) =>
      code === '' && QUIET.has(reason)
        ? ''
        : (known.get(`ended_${code}`) ?? known.get(`ended_${reason}`) ?? messages.ended_error).replace(
            '{time}',
            dailyReset,
          ),
    leftOut: ({ what, count, tool_name: name = '' }) => {
      const many = count === 1 ? undefined : known.get(`left_out_${what}_many`);
      const text = many ?? messages[`left_out_${what}`];
      return text.replace('{count}', `${count}`).replace('{name}', name);
    },
    notRun: messages.not_run,
    whyNotRun: (reason) => known.get(`not_run_${reason}`) ?? messages.not_run_gate,
    completedWithout,
    exception: ({ status, reason, notRun }) => {
      if (reason !== null && limits.includes(reason)) return known.get(`limit_reached_${reason}`) ?? '';
      return status === 'completed' && notRun > 0 ? completedWithout(notRun) : '';
    },
    planByLarkspur: messages.plan_by_larkspur,
    stepByLarkspur: messages.step_by_larkspur,
    notReported: messages.step_not_reported,
    criteria: (criteria) => messages.step_criteria.replace('{criteria}', () => criteria),
    callStopped: (cause, by, principal) =>
      cause === 'person' && principal === LOCAL_OWNER
        ? messages.call_stopped_by_you
        : cause === 'person' && by !== ''
        ? messages.call_stopped_by.replace('{name}', () => by)
        : (known.get(`call_stopped_${cause}`) ?? ''),
    refusal: ({ why, words }) => {
      const text = known.get(`refused_${why}`) ?? messages.denied;
      return words === '' ? text : `${text}: ${words}`;
    },
    details: (reason, code, error) => (complete.includes(code === '' ? reason : code) ? '' : error),
  };
}

export const RUN_TEXTS = { en: messagesOf(en), zh: messagesOf(zh) };
