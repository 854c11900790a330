/** ShortcutsDialog: whom they are meant for, and how they are taken. */
import { useEffect, useRef } from 'react';

/** The key that commands go with, as this machine writes it. */
export const COMMAND = /Mac|iP/.test(navigator.platform) ? '⌘' : 'Ctrl ';

/** Say whether a key is meant for a field, a menu or a dialog, or is part of a combination. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  const { target } = event;
  if (!(target instanceof HTMLElement)) return false;
  return target.closest('input:not([type=checkbox]), textarea, select, [contenteditable], dialog') !== null;
}

/** What keys do while `active`; those without an act are left to whoever else takes them. */
export function useShortcuts(active: boolean, keys: Record<string, (() => void) | undefined>): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    if (!active) return undefined;
    const press = (event: KeyboardEvent) => {
      // a key that is held would answer the next question as well
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
    // before all others: Esc in the bar is not Esc for the run
    addEventListener('keydown', press, true);
    return () => removeEventListener('keydown', press, true);
  }, [active]);
}
