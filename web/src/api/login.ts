/** Logging in by a one-time code: from the address that the gateway printed, or typed by hand. */
import { api } from './client';
import { reloadSession } from '../state/session_store';

const channel = new BroadcastChannel('larkspur.login');

/** Use the code of the address, which is cleared whatever comes of it. */
export async function logInFromAddress(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code === null) return;
  history.replaceState(null, '', location.pathname);
  try {
    await logIn(code);
  } catch {
    return; // used or too old: the page asks, if a login is needed at all
  }
}

/** Log in; all tabs of this browser go on. */
export async function logIn(code: string): Promise<void> {
  // the whole link may be given as well
  await api.login(code.trim().replace(/^.*#code=/, ''));
  channel.postMessage('in');
}

/** Call back when any other tab logged in; returns how to end it. */
export function onLogin(heard: () => void): () => void {
  const hear = () => {
    reloadSession();
    heard();
  };
  channel.addEventListener('message', hear);
  return () => channel.removeEventListener('message', hear);
}
