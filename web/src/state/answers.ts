/** Answers to questions: what is sent to the server, and sending it. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { hasStatus, type AnswerInput } from '../api/client';
import { useMessages } from '../i18n/catalog';
import type { ApprovalItem } from '../stream/events';
import { QUESTIONS_KEY, sendAnswer, useAnswerNotices } from './open_questions';
import { useSessionStore } from './session_store';

/** Return the answer that allows all calls except the excluded ones. */
export function approval(
  calls: readonly ApprovalItem[],
  excluded: ReadonlySet<string>,
  grant: 'once' | 'session' | 'rule' = 'once',
  rules: readonly string[] = [],
): AnswerInput {
  const items = Object.fromEntries(calls.map((call) => [call.call_id, !excluded.has(call.call_id)]));
  return {
    decision: 'approve',
    ...(excluded.size > 0 && { items }),
    ...(grant !== 'once' && { grant }),
    ...(rules.length > 0 && { rules: [...rules] }),
  };
}

/** Return the rules that would allow all calls except the excluded ones; null if one has none. */
export function offeredRules(
  calls: readonly ApprovalItem[],
  excluded: ReadonlySet<string>,
): string[] | null {
  const included = calls.filter((call) => !excluded.has(call.call_id));
  if (included.length === 0 || included.some((call) => (call.rules ?? []).length === 0)) return null;
  return [...new Set(included.flatMap((call) => call.rules ?? []))];
}

const MAX_RULE_CHARS = 40;

/** Return what rules cover for a button: `shell(npm test *)` is “npm test”; '' if it is too long. */
export function ruleLabel(rules: readonly string[]): string {
  const patterns = rules.map((rule) => (/^\w+\((.*)\)$/.exec(rule)?.[1] ?? rule).replace(/ \*$/, ''));
  const text = [...new Set(patterns)].join(', ');
  return text.length > MAX_RULE_CHARS ? '' : text;
}

export function nonBlankLines(text: string): string[] {
  return text.split('\n').map((line) => line.trim()).filter((line) => line !== '');
}

/** Return a function that answers a question; `failure` is the reason if that failed. */
export function useAnswer(id: string) {
  const t = useMessages();
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState('');
  const answer = async (input: AnswerInput) => {
    if (useAnswerNotices.getState().own.has(id)) return;
    setBusy(true);
    setFailure('');
    try {
      await sendAnswer(id, input);
    } catch (error) {
      if (hasStatus(error, 401)) useSessionStore.setState({ loggedOut: true });
      else setFailure((error as Error).message || t.unreachable);
    }
    setBusy(false);
    void queries.invalidateQueries({ queryKey: QUESTIONS_KEY });
  };
  return { answer, busy, failure };
}
