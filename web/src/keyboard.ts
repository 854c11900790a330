/** The key that commands go with, as this machine writes it. */
export const COMMAND = /Mac|iP/.test(navigator.platform) ? '⌘' : 'Ctrl ';

/** Say whether a key is meant for a field, a menu or a dialog, or is part of a combination. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  const { target } = event;
  if (!(target instanceof HTMLElement)) return false;
  return target.closest('input, textarea, select, [contenteditable], dialog') !== null;
}
