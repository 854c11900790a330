/** What is being written to a session: kept in this browser until the server has it. */
import { useCallback, useMemo, useRef, useState } from 'react';
import { randomId } from '../stream/shared_stream';
import { storage } from './preferences';

export interface Draft {
  text: string;
  write: (text: string) => void;
  clear: () => void;
  /** The same words sent again are the same task; other words are another one. */
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
  const key = useCallback((words: string) => {
    if (sent.current?.text !== words) sent.current = { text: words, key: randomId() };
    return sent.current.key;
  }, []);
  return useMemo(() => ({ text, write, clear, key }), [text, write, clear, key]);
}
