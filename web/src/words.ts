/** Every word of the page, in both languages. A key that one of them lacks does not compile. */
import { usePreferences, type Language } from './preferences';
import { en, type Words } from './words.en';
import { zh } from './words.zh';

export type { Words };

export const DICTIONARIES: Record<Language, Words> = { en, zh };

export function useWords(): Words {
  return DICTIONARIES[usePreferences((preferences) => preferences.language)];
}
