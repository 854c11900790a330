import { useDecisionMessages } from '../../i18n/decision';
import type { ApprovalItem } from '../../stream/events';
import { toolLabel } from '../../lib/tool_label';
import { FileChips } from '../files/file_chips';
import { Key } from './choices';
import { CodeText, Diff } from './code_text';

/** The calls of an approval, each exactly as it would be executed. */
export function PermissionCalls(props: {
  calls: readonly ApprovalItem[];
  excluded: ReadonlySet<string>;
  onToggleCall?: (call: string) => void;
}) {
  const { calls, excluded, onToggleCall } = props;
  const d = useDecisionMessages();
  return (
    <ol className="flex flex-col gap-3">
      {calls.map((call, at) => {
        const isExcluded = excluded.has(call.call_id);
        const { reason_code: code = '', reason_about: about = '' } = call;
        const reason = code === '' ? call.reason : d.reasons[code](about);
        const risk = d.risks[call.risk as keyof typeof d.risks] ?? call.risk;
        return (
          <li key={call.call_id}>
            {calls.length > 1 && (
              <label className="mb-1 flex items-center gap-2">
                <input
                  type="checkbox"
                  checked={!isExcluded}
                  disabled={onToggleCall === undefined}
                  onChange={() => onToggleCall?.(call.call_id)}
                  aria-label={d.include(toolLabel(call.tool, call.title))}
                  className="size-3.5 accent-accent"
                />
                {at < 9 && <Key>{at + 1}</Key>}
                <span className={`font-mono text-[13px] ${isExcluded ? 'text-dim line-through' : ''}`}>{toolLabel(call.tool, call.title)}</span>
              </label>
            )}
            <div className={calls.length > 1 ? 'ml-[1.375rem]' : ''}>
              <CallText call={call} />
              <p className="mt-1 text-[13px] text-dim">
                <span className="text-warn">{risk}</span>
                {reason !== '' && <span className="isolate-text"> · {reason}</span>}
              </p>
            </div>
          </li>
        );
      })}
    </ol>
  );
}

/** A command in full; for a file change, its diff followed by the call. */
function CallText({ call }: { call: ApprovalItem }) {
  const d = useDecisionMessages();
  const text = (
    <>
      <CodeText text={call.what} label={d.command(toolLabel(call.tool, call.title))} />
      {call.whole && (
        <div className="mt-1 text-[13px] text-warn">
          {d.tooLong}
          <FileChips files={[call.whole]} />
        </div>
      )}
    </>
  );
  if (call.diff === undefined || call.diff === '') return text;
  return (
    <>
      <Diff text={call.diff} />
      <details className="mt-1">
        <summary className="w-fit rounded text-[13px] text-dim hover:text-ink">{d.callInFull}</summary>
        <div className="mt-1">{text}</div>
      </details>
    </>
  );
}
