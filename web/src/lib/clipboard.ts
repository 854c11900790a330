/** Copying of texts, also where the browser has no clipboard for the page: over plain http. */

/** Copy a text. Rejects if the browser does not allow it. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.readOnly = true;
  area.className = 'fixed opacity-0';
  // within a dialog, which keeps the focus for what is in it
  (document.activeElement?.closest('dialog') ?? document.body).append(area);
  const focused = document.activeElement;
  area.select();
  // oxlint-disable-next-line typescript/no-deprecated -- nothing else copies in an insecure context
  const isCopied = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  if (!isCopied) throw new Error('');
}
