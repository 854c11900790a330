/** The mark in the title, and the permission of the browser to draw attention. */
import { create } from 'zustand';

/** Whether a run ended since the page was last visible. */
export const useAttention = create<{ ended: boolean }>(() => ({ ended: false }));

/** Ask the browser for its permission. Resolves to false if it is refused or cannot be asked. */
export async function requestNotifications(): Promise<boolean> {
  if (globalThis.Notification === undefined) return false;
  return (await Notification.requestPermission()) === 'granted';
}
