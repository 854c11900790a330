import { useState } from 'react';
import { approval, nonBlankLines, offeredRules, type Given } from '../../state/questions';
import type { ApprovalItem } from '../../stream/events';
import { useShortcuts } from '../../lib/keyboard';
import { useMessages } from '../../i18n/catalog';
import { Choices, Field, FieldActions, Key, type Choice } from './choices';
import type { DecisionProps } from './decision';
import { Diff, CodeText } from './code_text';
import { FileLink } from '../thread/file_link';

type Mode = 'choose' | 'rules' | 'because';

/** The calls of an approval, each exactly as it would be run. */
export function PermissionCalls(props: {
  calls: readonly ApprovalItem[];
  left: ReadonlySet<string>;
  onToggleCall?: (call: string) => void;
}) {
  const { calls, left, onToggleCall } = props;
  const t = useMessages();
  return (
    <ol className="flex flex-col gap-3">
      {calls.map((call, at) => {
        const out = left.has(call.call_id);
        const risk = t.risks[call.risk as keyof typeof t.risks] ?? call.risk;
        return (
          <li key={call.call_id}>
            {calls.length > 1 && (
              <label className="mb-1 flex items-center gap-2">
                <input
                  type="checkbox"
                  checked={!out}
                  disabled={onToggleCall === undefined}
                  onChange={() => onToggleCall?.(call.call_id)}
                  aria-label={t.include(call.tool)}
                  className="size-3.5 accent-accent"
                />
                {at < 9 && <Key>{at + 1}</Key>}
                <span className={`font-mono text-[13px] ${out ? 'text-dim line-through' : ''}`}>{call.tool}</span>
              </label>
            )}
            <div className={calls.length > 1 ? 'ml-[1.375rem]' : ''}>
              <What call={call} />
              <p className="mt-1 text-[13px] text-dim">
                <span className="text-warn">{risk}</span>
                {call.reason !== '' && <span className="isolate-text"> · {call.reason}</span>}
              </p>
            </div>
          </li>
        );
      })}
    </ol>
  );
}

/** A command as it is; of a change what it changes, and beneath it the call. */
function What({ call }: { call: ApprovalItem }) {
  const t = useMessages();
  const exact = (
    <>
      <CodeText text={call.what} label={t.command(call.tool)} />
      {call.whole && (
        <div className="mt-1 text-[13px] text-warn">
          {t.tooLong}
          <FileLink file={call.whole} />
        </div>
      )}
    </>
  );
  if (call.diff === undefined || call.diff === '') return exact;
  return (
    <>
      <Diff text={call.diff} />
      <details className="mt-1">
        <summary className="w-fit rounded text-[13px] text-dim hover:text-ink">{t.callInFull}</summary>
        <div className="mt-1">{exact}</div>
      </details>
    </>
  );
}

/** y once · a this session · p write a rule · n no · e no, because… */
export function PermissionChoices(props: DecisionProps & { left: ReadonlySet<string>; onToggleCall: (call: string) => void }) {
  const { question, active, disabled, answer, left } = props;
  const { calls } = question;
  const t = useMessages();
  const [mode, setMode] = useState<Mode>('choose');
  const [text, setText] = useState('');
  const rules = offeredRules(calls, left);
  const some = left.size < calls.length;
  const say = (given: Given) => () => answer(given);
  const open = (next: Mode, given = '') => () => {
    setMode(next);
    setText(given);
  };
  const back = () => setMode('choose');
  const toggles = calls.length > 1 ? calls.slice(0, 9) : [];
  const numbers = toggles.map((call, at) => [`${at + 1}`, () => props.onToggleCall(call.call_id)] as const);
  useShortcuts(active && !disabled && mode === 'choose', Object.fromEntries(numbers));
  useShortcuts(active && mode !== 'choose', { Escape: back });
  if (mode === 'rules') {
    const written = nonBlankLines(text);
    const send = () => written.length > 0 && answer(approval(calls, left, 'rule', written));
    return (
      <>
        <Field exact focused label={t.rules} value={text} onChange={setText} onSend={send} onCancel={back} />
        <FieldActions label={t.saveRules} disabled={disabled || written.length === 0} onSend={send} onCancel={back} />
      </>
    );
  }
  if (mode === 'because') {
    const send = () => text.trim() !== '' && answer({ decision: 'reject', text });
    return (
      <>
        <Field focused label={t.because} hint={t.becauseHint} value={text} onChange={setText} onSend={send} onCancel={back} />
        <FieldActions label={t.sendNo} disabled={disabled || text.trim() === ''} onSend={send} onCancel={back} />
      </>
    );
  }
  const yes = left.size > 0 ? t.choose.onceSome(calls.length - left.size, calls.length) : t.choose.once;
  const choices: Choice[] = [
    ...(some ? [{ key: 'y', label: yes, act: say(approval(calls, left)), primary: true }] : []),
    ...(rules === null
      ? []
      : [
          { key: 'a', label: t.choose.session, act: say(approval(calls, left, 'session')) },
          { key: 'p', label: t.choose.rule, act: open('rules', rules.join('\n')) },
        ]),
    { key: 'n', label: t.choose.no, act: say({ decision: 'reject' }) },
    { key: 'e', label: t.choose.because, act: open('because') },
  ];
  return (
    <>
      <Choices choices={choices} active={active} disabled={disabled} />
      {some && rules === null && <p className="mt-1.5 text-[13px] text-dim">{t.onceOnly}</p>}
    </>
  );
}
