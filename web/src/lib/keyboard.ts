/** Keyboard shortcuts. */
import { useLayoutEffect, useRef } from 'react';

/** The name of the command key on this machine. */
export const COMMAND = /Mac|iP/.test(navigator.platform) ? '⌘' : 'Ctrl ';

/** Return true if a key is meant for a field, a menu or a dialog, or is part of a combination. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  const { target } = event;
  if (!(target instanceof HTMLElement)) return false;
  return target.closest('input:not([type=checkbox]), textarea, select, [contenteditable], dialog') !== null;
}

/** Run the action of a pressed key while `active`. Keys without an action are left to others. */
export function useShortcuts(active: boolean, keys: Record<string, (() => void) | undefined>): void {
  const latest = useRef(keys);
  // layout effects: a key that is pressed as soon as a question is drawn belongs to that question
  useLayoutEffect(() => {
    latest.current = keys;
  });
  useLayoutEffect(() => {
    if (!active) return undefined;
    const press = (event: KeyboardEvent) => {
      // a key that is held down would answer the next question as well
      if (event.repeat || isTyping(event) || document.querySelector('dialog[open]')) return;
      const { target } = event;
      const pressed = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      const act = latest.current[pressed];
      if (act === undefined) return;
      if (pressed === 'Enter' && target instanceof Element && target.closest('button, a')) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      act();
    };
    // in the capture phase, so that Esc in a question does not stop the run
    addEventListener('keydown', press, true);
    return () => removeEventListener('keydown', press, true);
  }, [active]);
}
