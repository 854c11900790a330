import { useEffect, useRef, type ReactNode } from 'react';

/** A native modal dialog. Esc and a click outside close it. */
export function Dialog(props: {
  label: string;
  className: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    // the browser handles the keys: Esc fires a cancel event
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
