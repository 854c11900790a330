/** What runs say: the same sentences as in the terminal and in chats, in a chunk of their own. */
import en from '../../../internal/i18n/runs.en.json';
import zh from '../../../internal/i18n/runs.zh.json';
import type { Payloads } from '../stream/events';

/** `ended` has a sentence for each error code and reason; `details` is what an error adds to it. */
export interface RunMessages {
  startsOver: string;
  retry: (wait: Pick<Payloads['workflow.node.retry'], 'reason' | 'seconds' | 'attempt'>) => string;
  answeredBy: (fallback: { model: string; first: string }) => string;
  ended: (reason: string, code: string) => string;
  leftOut: (parts: LeftOut) => string;
  details: (reason: string, code: string, error: string) => string;
}

type LeftOut = Payloads['workflow.node.left_out'];

const QUIET = new Set(['final_answer', 'await_user_input', 'user_stop']);

function messagesOf({ messages, complete }: typeof en): RunMessages {
  const known = new Map(Object.entries(messages));
  return {
    startsOver: messages.starts_over,
    retry: ({ reason, seconds, attempt }) =>
      messages[`retry_${reason}`].replace('{seconds}', `${seconds}`).replace('{attempt}', `${attempt}`),
    answeredBy: ({ model, first }) =>
      messages.answered_by.replace('{model}', () => model).replace('{instead_of}', () => first),
    ended: (reason, code) =>
      code === '' && QUIET.has(reason)
        ? ''
        : (known.get(`ended_${code}`) ?? known.get(`ended_${reason}`) ?? messages.ended_error),
    leftOut: ({ what, count, tool_name: name = '' }) => {
      const many = count === 1 ? undefined : known.get(`left_out_${what}_many`);
      const text = many ?? messages[`left_out_${what}`];
      return text.replace('{count}', `${count}`).replace('{name}', name);
    },
    details: (reason, code, error) => (complete.includes(code === '' ? reason : code) ? '' : error),
  };
}

export const RUN_TEXTS = { en: messagesOf(en), zh: messagesOf(zh) };
