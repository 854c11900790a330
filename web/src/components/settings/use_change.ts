import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Finding } from '../../api/types.gen';
import { useSettingsMessages } from '../../i18n/settings';

const WAIT_MS = 250;
const MAX_WAITS = 60;

/** Settings; `pending` until the gateway has started again with them. */
interface Changed {
  pending: boolean;
}

/** What a form says of its last action, and the functions that run one. */
export interface Change {
  isBusy: boolean;
  findings: readonly Finding[];
  /** Show the findings of a check; false if it failed. */
  check: (work: () => Promise<readonly Finding[]>) => Promise<boolean>;
  /** Change a setting, wait until the gateway serves with it, and load everything anew. */
  change: <T extends Changed>(work: () => Promise<T>, load: () => Promise<T>) => Promise<boolean>;
}

export function useChange(): Change {
  const s = useSettingsMessages();
  const queries = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const [findings, setFindings] = useState<readonly Finding[]>([]);
  const run = async (work: () => Promise<readonly Finding[]>): Promise<boolean> => {
    setBusy(true);
    setFindings([]);
    const found = await work().catch((error: Error): Finding[] => [
      { state: 'fail', sentence: error.message || s.failed },
    ]);
    setFindings(found);
    setBusy(false);
    return found.every((one) => one.state !== 'fail');
  };
  return {
    isBusy,
    findings,
    check: run,
    change: (work, load) =>
      run(async () => {
        const serves = !(await work()).pending || (await servesAgain(load));
        await queries.invalidateQueries();
        return [serves ? { state: 'ok', sentence: s.applied } : { state: 'warn', sentence: s.notServing }];
      }),
  };
}

/** Wait until the gateway has started again. */
async function servesAgain(load: () => Promise<Changed>, waits = 0): Promise<boolean> {
  await new Promise((resolve) => {
    setTimeout(resolve, WAIT_MS);
  });
  const found = await load().catch(() => null);
  if (found !== null && !found.pending) return true;
  return waits < MAX_WAITS && servesAgain(load, waits + 1);
}
