import { usePlainHttpMessages } from '../../i18n/plain_http';
import { setPreferences } from '../../state/preferences';

/** Says what browsers do not offer over plain http, until it is dismissed. */
export function PlainHttpNotice() {
  const t = usePlainHttpMessages();
  return (
    <p role="note" className="flex flex-wrap items-start gap-x-3 border-b border-line px-4 py-1.5 text-[13px] text-dim">
      <span>{t.text}</span>
      <button type="button" onClick={() => setPreferences({ plainHttpNoticeDismissed: true })} className="flex-none text-accent hover:underline">
        {t.dismiss}
      </button>
    </p>
  );
}
