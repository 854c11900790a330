import { formatDay, formatTime } from '../../lib/format';
import { usePreferences } from '../../state/preferences';

/** Return a function that formats a time with its day, in the language of the page. */
export function useMoment(): (time: string) => string {
  const language = usePreferences((preferences) => preferences.language);
  return (time) => `${formatDay(time, language)} ${formatTime(time, language)}`;
}
