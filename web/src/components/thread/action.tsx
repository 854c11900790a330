/** Buttons for what can be done with a run or a message, and what their requests ended with. */
import type { ReactNode } from 'react';

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
