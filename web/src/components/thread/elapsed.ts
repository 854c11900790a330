import { useEffect, useState } from 'react';

/** Return the milliseconds since a time, each second anew. */
export function useElapsed(since: string): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return Math.max(0, now - Date.parse(since));
}
