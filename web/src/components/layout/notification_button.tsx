import { Bell, BellOff } from 'lucide-react';
import { useMessages } from '../../i18n/catalog';
import { requestNotifications } from '../../state/attention';
import { setPreferences, usePreferences } from '../../state/preferences';

/** Turns notifications on and off; the browser asks for its permission the first time. */
export function NotificationButton() {
  const t = useMessages();
  const notify = usePreferences((preferences) => preferences.notify);
  const Icon = notify ? Bell : BellOff;
  const change = async () => {
    setPreferences({ notify: !notify && (await requestNotifications()) });
  };
  return (
    <button
      type="button"
      className="bar-button"
      aria-pressed={notify}
      title={t.notifications}
      aria-label={t.notifications}
      onClick={() => void change()}
    >
      <Icon size={16} aria-hidden="true" />
    </button>
  );
}
