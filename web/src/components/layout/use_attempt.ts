/** Requests that a person makes: whether they are being done, and why the last one failed. */
import { useState } from 'react';
import { useMessages } from '../../i18n/catalog';

/** Return the last failure, whether work is being done, and a function that does it. */
export function useAttempt(): [string, boolean, (work: () => Promise<unknown>) => Promise<void>] {
  const t = useMessages();
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<unknown>) => {
    setBusy(true);
    setFailure('');
    try {
      await work();
    } catch (error) {
      setFailure((error as Error).message || t.unreachable);
    } finally {
      setBusy(false);
    }
  };
  return [failure, busy, attempt];
}
