/** The unsent message of a session, stored in the browser. */
import { useCallback, useMemo, useRef, useState } from 'react';
import { randomId } from '../stream/shared_stream';
import { storage } from './preferences';

/** Event that submits its detail, an example, as a task. */
export const EXAMPLE_EVENT = 'larkspur.example';
/** Event that adds its detail to the unsent message. */
export const INSERT_EVENT = 'larkspur.insert';

export interface Draft {
  text: string;
  write: (text: string) => void;
  clear: () => void;
  /** The idempotency key: the same for the same text, so that a retry creates no second task. */
  key: (text: string) => string;
}

export function useDraft(session: string): Draft {
  const name = `larkspur.draft.${session}`;
  const [text, setText] = useState(() => storage.read(name) ?? '');
  const sent = useRef<{ text: string; key: string } | null>(null);
  const write = useCallback(
    (next: string) => {
      setText(next);
      storage.write(name, next === '' ? null : next);
    },
    [name],
  );
  const clear = useCallback(() => {
    sent.current = null;
    write('');
  }, [write]);
  const key = useCallback((message: string) => {
    if (sent.current?.text !== message) sent.current = { text: message, key: randomId() };
    return sent.current.key;
  }, []);
  return useMemo(() => ({ text, write, clear, key }), [text, write, clear, key]);
}
