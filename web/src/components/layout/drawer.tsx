import type { ReactNode } from 'react';
import { Dialog } from './dialog';

/** A dialog at the left or right edge of the window. */
export function Drawer(props: {
  side: 'left' | 'right';
  label: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const edge = props.side === 'left' ? 'mr-auto border-r' : 'ml-auto border-l';
  return (
    <Dialog
      label={props.label}
      onClose={props.onClose}
      className={`my-0 h-dvh max-h-none w-[min(300px,86vw)] border-y-0 ${edge}`}
    >
      {props.children}
    </Dialog>
  );
}
