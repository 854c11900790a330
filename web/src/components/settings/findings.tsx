import type { Finding } from '../../api/types.gen';
import { useSettingsMessages } from '../../i18n/settings';

const COLOURS = { ok: 'text-ok', warn: 'text-warn', fail: 'text-bad' };

/** The results of a check or a change. `onUse` takes over the address that works. */
export function FindingList({ findings, onUse }: { findings: readonly Finding[]; onUse?: (finding: Finding) => void }) {
  const s = useSettingsMessages();
  return (
    <div role="status" className="mt-2 flex flex-col gap-1">
      {findings.map((one) => (
        <p key={one.sentence} className="isolate-text">
          <span className={COLOURS[one.state]}>{s.findings[one.state]}</span>
          {` ${one.sentence}`}
          {one.advice !== undefined && one.advice !== '' && <span className="text-dim">{` ${one.advice}`}</span>}
          {onUse !== undefined && one.base_url !== undefined && one.base_url !== '' && (
            <button type="button" className="choice ml-2" onClick={() => onUse(one)}>
              {s.takeAddress(one.base_url)}
            </button>
          )}
        </p>
      ))}
    </div>
  );
}
