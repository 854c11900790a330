import { useState } from 'react';
import type { Plan } from '../../stream/events';
import { useShortcuts } from '../../lib/keyboard';
import { useDecisionMessages } from '../../i18n/decision';
import { Choices, Field, FieldActions, type DecisionProps } from './choices';
import { PlanEditor } from './plan_editor';

type Mode = 'choose' | 'edit' | 'reject' | 'feedback';

/** The answers to a plan. Keys: y approve, e edit, f request changes, n reject with a note. */
export function PlanChoices(props: DecisionProps & { plan: Plan }) {
  const { plan, active, disabled, answer } = props;
  const d = useDecisionMessages();
  const [mode, setMode] = useState<Mode>('choose');
  const [text, setText] = useState('');
  const open = (next: Mode) => () => {
    setMode(next);
    setText('');
    props.onEditing(next === 'edit');
  };
  const back = open('choose');
  useShortcuts(active && mode !== 'choose', { Escape: back });
  if (mode === 'edit') {
    return (
      <PlanEditor plan={plan} disabled={disabled} onSend={(edit) => answer({ decision: 'edit', edit })} onCancel={back} />
    );
  }
  if (mode === 'reject') {
    const send = () => answer({ decision: 'reject', text });
    return (
      <>
        <Field focused label={d.note} hint={d.noteHint} value={text} onChange={setText} onSend={send} onCancel={back} />
        <FieldActions label={d.rejectPlan} disabled={disabled} onSend={send} onCancel={back} />
      </>
    );
  }
  if (mode === 'feedback') {
    const send = () => text.trim() !== '' && answer({ decision: 'text', text });
    return (
      <>
        <Field focused label={d.feedback} hint={d.feedbackHint} value={text} onChange={setText} onSend={send} onCancel={back} />
        <FieldActions label={d.sendFeedback} disabled={disabled || text.trim() === ''} onSend={send} onCancel={back} />
      </>
    );
  }
  const { choose } = d;
  return (
    <Choices
      active={active}
      disabled={disabled}
      choices={[
        { key: 'y', label: choose.approve, act: () => answer({ decision: 'approve' }), primary: true },
        { key: 'e', label: choose.edit, act: open('edit') },
        { key: 'f', label: choose.feedback, act: open('feedback') },
        { key: 'n', label: choose.reject, act: open('reject') },
      ]}
    />
  );
}
