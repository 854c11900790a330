/** Preferences of the user, stored in the browser. */
import { create } from 'zustand';

const VALUES = { language: ['en', 'zh'], theme: ['system', 'light', 'dark'] } as const;

export type Language = (typeof VALUES)['language'][number];
export type Theme = (typeof VALUES)['theme'][number];

export interface Preferences {
  language: Language;
  theme: Theme;
  offlineNoticeDismissed: boolean;
  plainHttpNoticeDismissed: boolean;
  /** Show a notification of the system when something waits or ends while no tab is visible. */
  notify: boolean;
  /** Play a sound with it. */
  sound: boolean;
}

const KEY = 'larkspur.preferences';

/** Local storage; without access or space, nothing is kept and the page still works. */
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

/** Return a stored object, an empty one if there is none or something else. */
export function storedObject(key: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(storage.read(key) ?? '{}');
    return typeof found === 'object' && found !== null ? { ...found } : {};
  } catch {
    return {};
  }
}

/** Return the stored preferences. What this version does not know has its default. */
function stored(): Preferences {
  const language = navigator.language.startsWith('zh') ? 'zh' : 'en';
  const defaults: Preferences = { language, theme: 'system', offlineNoticeDismissed: false, plainHttpNoticeDismissed: false, notify: false, sound: false };
  const known = Object.entries(storedObject(KEY)).filter(([name, value]) => {
    const values = (VALUES as Record<string, readonly unknown[] | undefined>)[name] ?? [true, false];
    return name in defaults && values.includes(value);
  });
  return { ...defaults, ...Object.fromEntries(known) };
}

export const usePreferences = create<Preferences>(stored);

export function setPreferences(change: Partial<Preferences>): void {
  usePreferences.setState(change);
}

/** Return a hook that returns the texts in the language of the page. */
export function translated<T>(texts: Record<Language, T>): () => T {
  return () => texts[usePreferences((preferences) => preferences.language)];
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
