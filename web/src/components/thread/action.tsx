/** Buttons for what can be done with a run or a message, and what their requests ended with. */
import { useState, type ReactNode } from 'react';
import { useMessages } from '../../i18n/catalog';

/** A button; a `quiet` one shows its name to screen readers and as a tooltip only. */
export function Action(props: {
  icon: ReactNode;
  name: string;
  title?: string;
  busy: boolean;
  quiet?: boolean;
  pressed?: boolean;
  onClick: () => void;
}) {
  return (
    <button
      type="button"
      disabled={props.busy}
      title={props.title ?? props.name}
      aria-label={props.name}
      aria-pressed={props.pressed}
      onClick={props.onClick}
      className={props.quiet ? `bar-button h-7! w-7! ${props.pressed ? 'text-ink!' : ''}` : 'choice min-h-7! py-0!'}
    >
      <span aria-hidden="true">{props.icon}</span>
      {!props.quiet && props.name}
    </button>
  );
}

export function Failure({ text }: { text: string }) {
  if (text === '') return null;
  return (
    <span role="alert" className="text-bad">
      {text}
    </span>
  );
}

/** Return the last failure, whether work is being done, and a function that does it. */
export function useAttempt(): [string, boolean, (work: () => Promise<unknown>) => Promise<void>] {
  const t = useMessages();
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<unknown>) => {
    setBusy(true);
    setFailure('');
    try {
      await work();
    } catch (error) {
      setFailure((error as Error).message || t.unreachable);
    } finally {
      setBusy(false);
    }
  };
  return [failure, busy, attempt];
}
