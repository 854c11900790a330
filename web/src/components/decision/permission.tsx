import { useState } from 'react';
import type { AnswerInput } from '../../api/client';
import { approval, nonBlankLines, offeredRules, ruleLabel } from '../../state/answers';
import { useShortcuts } from '../../lib/keyboard';
import { useDecisionMessages } from '../../i18n/decision';
import { Choices, Field, FieldActions, type Choice, type DecisionProps } from './choices';

type Mode = 'choose' | 'rules' | 'because';

/** The answers to calls. Keys: y once, a session, p rule, n no, e no with a reason, 1–9 select. */
export function PermissionChoices(props: DecisionProps & { excluded: ReadonlySet<string>; onToggleCall: (call: string) => void }) {
  const { question, active, disabled, answer, excluded } = props;
  const { calls } = question;
  const d = useDecisionMessages();
  const [mode, setMode] = useState<Mode>('choose');
  const [text, setText] = useState('');
  const rules = offeredRules(calls, excluded);
  const hasCalls = excluded.size < calls.length;
  const send = (input: AnswerInput) => () => answer(input);
  const open = (next: Mode, initial = '') => () => {
    setMode(next);
    setText(initial);
  };
  const back = () => setMode('choose');
  const toggles = calls.length > 1 ? calls.slice(0, 9) : [];
  const numbers = toggles.map((call, at) => [`${at + 1}`, () => props.onToggleCall(call.call_id)] as const);
  useShortcuts(active && !disabled && mode === 'choose', Object.fromEntries(numbers));
  useShortcuts(active && mode !== 'choose', { Escape: back });
  if (mode === 'rules') {
    const newRules = nonBlankLines(text);
    const save = () => newRules.length > 0 && answer(approval(calls, excluded, 'rule', newRules));
    return (
      <>
        <Field exact focused label={d.rules} value={text} onChange={setText} onSend={save} onCancel={back} />
        <FieldActions label={d.saveRules} disabled={disabled || newRules.length === 0} onSend={save} onCancel={back} />
      </>
    );
  }
  if (mode === 'because') {
    const reject = () => text.trim() !== '' && answer({ decision: 'reject', text });
    return (
      <>
        <Field focused label={d.because} hint={d.becauseHint} value={text} onChange={setText} onSend={reject} onCancel={back} />
        <FieldActions label={d.choose.no} disabled={disabled || text.trim() === ''} onSend={reject} onCancel={back} />
      </>
    );
  }
  const trusts = calls.every((call) => call.action === 'trust');
  const once = trusts ? d.choose.trust : d.choose.once;
  const yes = excluded.size > 0 ? d.choose.onceSome(calls.length - excluded.size, calls.length) : once;
  const choices: Choice[] = [
    ...(hasCalls ? [{ key: 'y', label: yes, act: send(approval(calls, excluded)), primary: true }] : []),
    ...(rules === null
      ? []
      : [
          { key: 'a', label: d.choose.session, act: send(approval(calls, excluded, 'session')) },
          { key: 'p', label: d.choose.rule(ruleLabel(rules)), act: open('rules', rules.join('\n')) },
        ]),
    { key: 'n', label: d.choose.no, act: send({ decision: 'reject' }) },
    { key: 'e', label: d.choose.because, act: open('because') },
  ];
  return (
    <>
      <Choices choices={choices} active={active} disabled={disabled} />
      {hasCalls && rules === null && !trusts && <p className="mt-1.5 text-[13px] text-dim">{d.onceOnly}</p>}
    </>
  );
}
