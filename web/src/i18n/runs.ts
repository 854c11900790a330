/** The sentences about runs, which are loaded once the page is shown. */
import { create } from 'zustand';
import { usePreferences } from '../state/preferences';
import type { RunMessages, RUN_TEXTS } from './run_texts';

const RETRY_MS = 5_000;

const useLoaded = create<{ texts: typeof RUN_TEXTS | null }>(() => ({ texts: null }));

/** Return the sentences in the language of the page, null if their chunk cannot be loaded. */
export async function loadRunMessages(): Promise<RunMessages | null> {
  try {
    const texts = useLoaded.getState().texts ?? (await import('./run_texts')).RUN_TEXTS;
    useLoaded.setState({ texts });
    return texts[usePreferences.getState().language];
  } catch {
    return null;
  }
}

/** Load the sentences, and again until they are there: the server may be away. */
export async function startRunMessages(): Promise<void> {
  if ((await loadRunMessages()) === null) setTimeout(() => void startRunMessages(), RETRY_MS);
}

/** Return the sentences, null until they are loaded. */
export function useRunMessages(): RunMessages | null {
  const language = usePreferences((preferences) => preferences.language);
  const texts = useLoaded((loaded) => loaded.texts);
  return texts === null ? null : texts[language];
}
