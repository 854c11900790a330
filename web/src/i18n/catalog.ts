/** Every word of the page, in both languages. A key that one of them lacks does not compile. */
import { usePreferences, type Language } from '../state/preferences';
import { en, type Messages } from './en';
import { zh } from './zh';

export type { Messages };

export const CATALOGS: Record<Language, Messages> = { en, zh };

export function useMessages(): Messages {
  return CATALOGS[usePreferences((preferences) => preferences.language)];
}
