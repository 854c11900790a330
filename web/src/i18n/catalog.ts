/** The texts of the page in the chosen language. A missing key is a compile error. */
import { create } from 'zustand';
import { usePreferences, type Language } from '../state/preferences';
import { en, type Messages } from './en';

export type { Messages };

const LOADERS: Record<Language, () => Promise<Messages>> = {
  en: () => Promise.resolve(en),
  zh: () => import('./zh').then((module) => module.zh),
};

const useCatalog = create<{ messages: Messages }>(() => ({ messages: en }));

export function useMessages(): Messages {
  return useCatalog((state) => state.messages);
}

/** Show the texts of the preferred language, now and whenever it changes. */
export async function startCatalog(): Promise<void> {
  usePreferences.subscribe(({ language }, before) => {
    if (language !== before.language) void show(language);
  });
  await show(usePreferences.getState().language);
}

async function show(language: Language): Promise<void> {
  try {
    const messages = await LOADERS[language]();
    if (usePreferences.getState().language === language) useCatalog.setState({ messages });
  } catch {
    return; // the chunk cannot be loaded: the texts stay in the language before
  }
}
