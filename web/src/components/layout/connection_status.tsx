import { useEffect, useState } from 'react';
import { useSessionStore } from '../../state/session_store';
import { useMessages } from '../../i18n/catalog';

const NOTICE_DELAY_MS = 3_000;

/** Shows a line at the top when the connection has been lost for a while. */
export function ConnectionStatus() {
  const t = useMessages();
  const since = useSessionStore((store) => store.lostSince);
  const [waitedFor, setWaitedFor] = useState<number | null>(null);
  const late = since !== null && waitedFor === since;
  useEffect(() => {
    if (since === null) return undefined;
    const timer = setTimeout(() => setWaitedFor(since), since + NOTICE_DELAY_MS - Date.now());
    return () => clearTimeout(timer);
  }, [since]);
  return (
    <div role="status" className="pointer-events-none fixed inset-x-0 top-0 z-20 text-center text-xs">
      {late && (
        <>
          <div className="pulse h-0.5 bg-warn" />
          <span className="rounded-b-md bg-raised px-3 py-1 text-warn shadow">{t.reconnecting}</span>
        </>
      )}
    </div>
  );
}
