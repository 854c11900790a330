import { useState } from 'react';
import { useMessages } from '../../i18n/catalog';
import { useSettingsMessages } from '../../i18n/settings';
import { requestNotifications } from '../../state/attention';
import { setPreferences, usePreferences, type Language, type Theme } from '../../state/preferences';

const LANGUAGES: Record<Language, string> = { en: 'English', zh: '中文' };
const FIELD = 'h-9 rounded-lg border border-line bg-raised px-2';

/** How the page looks, and when it notifies. Stored in this browser. */
export function Appearance() {
  const t = useMessages();
  const s = useSettingsMessages();
  const { language, theme, notify, sound } = usePreferences();
  const [denied, setDenied] = useState(false);
  const changeNotify = async (wanted: boolean) => {
    const allowed = wanted && (await requestNotifications());
    setDenied(wanted && !allowed);
    setPreferences({ notify: allowed });
  };
  return (
    <div className="flex flex-col gap-3">
      <label className="flex items-center gap-3">
        <span className="w-32 text-dim">{t.theme}</span>
        <select className={FIELD} value={theme} onChange={(event) => setPreferences({ theme: event.target.value as Theme })}>
          {(['system', 'light', 'dark'] as const).map((one) => (
            <option key={one} value={one}>
              {t.themes[one]}
            </option>
          ))}
        </select>
      </label>
      <label className="flex items-center gap-3">
        <span className="w-32 text-dim">{s.language}</span>
        <select className={FIELD} value={language} onChange={(event) => setPreferences({ language: event.target.value as Language })}>
          {Object.entries(LANGUAGES).map(([code, name]) => (
            <option key={code} value={code}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label className="flex items-center gap-2">
        <input type="checkbox" className="size-4 accent-accent" checked={notify} disabled={!isSecureContext} onChange={(event) => void changeNotify(event.target.checked)} />
        {s.notify}
      </label>
      {!isSecureContext && <p className="text-dim">{s.notifyNeedsHttps}</p>}
      {denied && <p role="alert" className="text-bad">{s.notifyDenied}</p>}
      <label className="flex items-center gap-2">
        <input type="checkbox" className="size-4 accent-accent" checked={sound} disabled={!notify} onChange={(event) => setPreferences({ sound: event.target.checked })} />
        {s.sound}
      </label>
    </div>
  );
}
