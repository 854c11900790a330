/** Login by a one-time code, from the address of the page or entered by the user. */
import { sharedName } from './address';
import { api, hasStatus, setLoginKey } from './client';
import { reloadSession } from '../state/session_store';

const channel = new BroadcastChannel(sharedName('larkspur.login'));

let isLinkRejected = false;

/** Return true if the page was opened with a link that was used before, or that is too old. */
export function wasLinkRejected(): boolean {
  return isLinkRejected;
}

/** Redeem the code in the address and remove it from there. */
export async function logInFromAddress(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code === null) return;
  history.replaceState(null, '', location.pathname);
  try {
    await logIn(code);
  } catch (error) {
    isLinkRejected = hasStatus(error, 403); // the page says so if a login is needed at all
  }
}

/** Log in, in all tabs of this browser. */
export async function logIn(code: string): Promise<void> {
  // the user may enter the whole link
  const { key } = await api.login(code.trim().replace(/^.*#code=/, ''));
  setLoginKey(key);
  channel.postMessage(key);
}

/** Call `listener` when another tab logs in; return a function that stops this. */
export function onLogin(heard: () => void): () => void {
  const hear = ({ data }: MessageEvent<string>) => {
    setLoginKey(data);
    reloadSession();
    heard();
  };
  channel.addEventListener('message', hear);
  return () => channel.removeEventListener('message', hear);
}
