import { useState } from 'react';
import { agreed, linesOf, offered, type Given } from '../asking';
import type { ApprovalItem } from '../events';
import { useKeys } from '../keyboard';
import { useWords } from '../words';
import { Choices, Field, FieldEnd, Key, type Choice } from './choices';
import type { Deciding } from './decision';
import { Diff, Exact } from './exact';
import { FileLink } from './file';

type Mode = 'choose' | 'rules' | 'because';

/** The calls of an approval, each exactly as it would be run. */
export function PermissionBody(props: {
  calls: readonly ApprovalItem[];
  left: ReadonlySet<string>;
  onLeave?: (call: string) => void;
}) {
  const { calls, left, onLeave } = props;
  const words = useWords();
  return (
    <ol className="flex flex-col gap-3">
      {calls.map((call, at) => {
        const out = left.has(call.call_id);
        const risk = words.risks[call.risk as keyof typeof words.risks] ?? call.risk;
        return (
          <li key={call.call_id}>
            {calls.length > 1 && (
              <label className="mb-1 flex items-center gap-2">
                <input
                  type="checkbox"
                  checked={!out}
                  disabled={onLeave === undefined}
                  onChange={() => onLeave?.(call.call_id)}
                  aria-label={words.include(call.tool)}
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
  const words = useWords();
  const exact = (
    <>
      <Exact text={call.what} label={words.command(call.tool)} />
      {call.whole && (
        <div className="mt-1 text-[13px] text-warn">
          {words.tooLong}
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
        <summary className="w-fit rounded text-[13px] text-dim hover:text-ink">{words.callInFull}</summary>
        <div className="mt-1">{exact}</div>
      </details>
    </>
  );
}

/** y once · a this session · p write a rule · n no · e no, because… */
export function PermissionChoices(props: Deciding & { left: ReadonlySet<string>; onLeave: (call: string) => void }) {
  const { question, active, disabled, answer, left } = props;
  const { calls } = question;
  const words = useWords();
  const [mode, setMode] = useState<Mode>('choose');
  const [text, setText] = useState('');
  const rules = offered(calls, left);
  const some = left.size < calls.length;
  const say = (given: Given) => () => answer(given);
  const open = (next: Mode, given = '') => () => {
    setMode(next);
    setText(given);
  };
  const back = () => setMode('choose');
  const toggles = calls.length > 1 ? calls.slice(0, 9) : [];
  const numbers = toggles.map((call, at) => [`${at + 1}`, () => props.onLeave(call.call_id)] as const);
  useKeys(active && !disabled && mode === 'choose', Object.fromEntries(numbers));
  useKeys(active && mode !== 'choose', { Escape: back });
  if (mode === 'rules') {
    const written = linesOf(text);
    const send = () => written.length > 0 && answer(agreed(calls, left, 'rule', written));
    return (
      <>
        <Field exact focused label={words.rules} value={text} onChange={setText} onSend={send} onLeave={back} />
        <FieldEnd label={words.saveRules} disabled={disabled || written.length === 0} onSend={send} onLeave={back} />
      </>
    );
  }
  if (mode === 'because') {
    const send = () => text.trim() !== '' && answer({ decision: 'reject', text });
    return (
      <>
        <Field focused label={words.because} hint={words.becauseHint} value={text} onChange={setText} onSend={send} onLeave={back} />
        <FieldEnd label={words.sendNo} disabled={disabled || text.trim() === ''} onSend={send} onLeave={back} />
      </>
    );
  }
  const yes = left.size > 0 ? words.choose.onceSome(calls.length - left.size, calls.length) : words.choose.once;
  const choices: Choice[] = [
    ...(some ? [{ key: 'y', label: yes, act: say(agreed(calls, left)), primary: true }] : []),
    ...(rules === null
      ? []
      : [
          { key: 'a', label: words.choose.session, act: say(agreed(calls, left, 'session')) },
          { key: 'p', label: words.choose.rule, act: open('rules', rules.join('\n')) },
        ]),
    { key: 'n', label: words.choose.no, act: say({ decision: 'reject' }) },
    { key: 'e', label: words.choose.because, act: open('because') },
  ];
  return (
    <>
      <Choices choices={choices} active={active} disabled={disabled} />
      {some && rules === null && <p className="mt-1.5 text-[13px] text-dim">{words.onceOnly}</p>}
    </>
  );
}
