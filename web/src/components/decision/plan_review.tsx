import { useState } from 'react';
import type { Plan } from '../../stream/events';
import { useShortcuts } from '../../lib/keyboard';
import { useMessages } from '../../i18n/catalog';
import { Choices, Field, FieldActions } from './choices';
import type { DecisionProps } from './decision';
import { PlanEditor } from './plan_editor';
import { Steps } from '../thread/plan_steps';

type Mode = 'choose' | 'edit' | 'reject' | 'feedback';

export function PlanView({ plan }: { plan: Plan }) {
  const steps = plan.steps.map(({ status = 'pending', ...step }) => ({ ...step, status }));
  return (
    <>
      <p className="isolate-text mb-1 font-medium break-words">{plan.goal}</p>
      <Steps steps={steps} plain />
    </>
  );
}

/** y approve · e edit · n reject, with a note · f say what to change */
export function PlanChoices(props: DecisionProps & { plan: Plan }) {
  const { plan, active, disabled, answer } = props;
  const t = useMessages();
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
    return <PlanEditor plan={plan} disabled={disabled} onSend={(edit) => answer({ decision: 'edit', edit })} onCancel={back} />;
  }
  if (mode === 'reject') {
    const send = () => answer({ decision: 'reject', text });
    return (
      <>
        <Field focused label={t.note} hint={t.noteHint} value={text} onChange={setText} onSend={send} onCancel={back} />
        <FieldActions label={t.rejectPlan} disabled={disabled} onSend={send} onCancel={back} />
      </>
    );
  }
  if (mode === 'feedback') {
    const send = () => text.trim() !== '' && answer({ decision: 'text', text });
    return (
      <>
        <Field focused label={t.feedback} hint={t.feedbackHint} value={text} onChange={setText} onSend={send} onCancel={back} />
        <FieldActions label={t.sendFeedback} disabled={disabled || text.trim() === ''} onSend={send} onCancel={back} />
      </>
    );
  }
  const { choose } = t;
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
