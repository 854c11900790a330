/** What a person prefers in this browser. */
import { create } from 'zustand';

export type Language = 'en' | 'zh';
export type Theme = 'system' | 'light' | 'dark';
export type Mode = 'ask' | 'plan' | 'accept-edits' | 'full';

export interface Preferences {
  language: Language;
  theme: Theme;
  mode: Mode;
  /** Plans of new tasks wait for a yes. */
  review: boolean;
  /** The line about the offline model was read. */
  told: boolean;
}

const KEY = 'larkspur.preferences';

/** Storage may be refused or full: then the page forgets, and works. */
export const storage = {
  read(key: string): string | null {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  },
  write(key: string, value: string | null): void {
    try {
      if (value === null) localStorage.removeItem(key);
      else localStorage.setItem(key, value);
    } catch {
      return;
    }
  },
};

function stored(): Preferences {
  const language = navigator.language.startsWith('zh') ? 'zh' : 'en';
  const given: Preferences = { language, theme: 'system', mode: 'ask', review: false, told: false };
  try {
    return { ...given, ...(JSON.parse(storage.read(KEY) ?? '{}') as Partial<Preferences>) };
  } catch {
    return given;
  }
}

export const usePreferences = create<Preferences>(stored);

export function setPreferences(change: Partial<Preferences>): void {
  usePreferences.setState(change);
}

function apply(preferences: Preferences): void {
  document.documentElement.lang = preferences.language === 'zh' ? 'zh-CN' : 'en';
  document.documentElement.dataset['theme'] = preferences.theme;
}

usePreferences.subscribe((preferences) => {
  storage.write(KEY, JSON.stringify(preferences));
  apply(preferences);
});
apply(usePreferences.getState());
