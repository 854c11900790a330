import { useEffect, useRef, type ReactNode } from 'react';

/** A modal dialog of the browser's own; Esc and a click beside it close it. */
export function Dialog(props: {
  label: string;
  className: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return (
    // the keys of a dialog are the browser's: Esc comes as a cancel
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions
    <dialog
      ref={dialog}
      aria-label={props.label}
      className={`border border-line bg-bg text-ink shadow-xl ${props.className}`}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => event.target === event.currentTarget && props.onClose()}
    >
      {props.children}
    </dialog>
  );
}

/** A drawer at an edge of the window. */
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
