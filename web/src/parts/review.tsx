import { useState } from 'react';
import type { Plan } from '../events';
import { useKeys } from '../keyboard';
import { useWords } from '../words';
import { Choices, Field, FieldEnd } from './choices';
import type { Deciding } from './decision';
import { PlanEditor } from './plan-editor';
import { Steps } from './steps';

type Mode = 'choose' | 'edit' | 'reject' | 'feedback';

export function PlanBody({ plan }: { plan: Plan }) {
  const steps = plan.steps.map(({ status = 'pending', ...step }) => ({ ...step, status }));
  return (
    <>
      <p className="isolate-text mb-1 font-medium break-words">{plan.goal}</p>
      <Steps steps={steps} plain />
    </>
  );
}

/** y approve · e edit · n reject, with a note · f say what to change */
export function PlanChoices(props: Deciding & { plan: Plan }) {
  const { plan, active, disabled, answer } = props;
  const words = useWords();
  const [mode, setMode] = useState<Mode>('choose');
  const [text, setText] = useState('');
  const open = (next: Mode) => () => {
    setMode(next);
    setText('');
    props.onEditing(next === 'edit');
  };
  const back = open('choose');
  useKeys(active && mode !== 'choose', { Escape: back });
  if (mode === 'edit') {
    return <PlanEditor plan={plan} disabled={disabled} onSend={(edit) => answer({ decision: 'edit', edit })} onLeave={back} />;
  }
  if (mode === 'reject') {
    const send = () => answer({ decision: 'reject', text });
    return (
      <>
        <Field focused label={words.note} hint={words.noteHint} value={text} onChange={setText} onSend={send} onLeave={back} />
        <FieldEnd label={words.rejectPlan} disabled={disabled} onSend={send} onLeave={back} />
      </>
    );
  }
  if (mode === 'feedback') {
    const send = () => text.trim() !== '' && answer({ decision: 'text', text });
    return (
      <>
        <Field focused label={words.feedback} hint={words.feedbackHint} value={text} onChange={setText} onSend={send} onLeave={back} />
        <FieldEnd label={words.sendFeedback} disabled={disabled || text.trim() === ''} onSend={send} onLeave={back} />
      </>
    );
  }
  const { choose } = words;
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
