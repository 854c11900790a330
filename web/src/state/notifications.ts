/** Notifications of the system, for a page that nobody looks at; loaded once the page is shown. */
import { address } from '../api/address';
import type { SubtaskPlace } from '../i18n/en';
import type { RunMessages } from '../i18n/run_texts';
import type { Envelope } from '../stream/events';
import { useAttention } from './attention';
import { usePreferences } from './preferences';
import { askerOf } from './questions';
import { subscribe } from './session_store';

/** A tab holds it while it is visible; all tabs of the browser can see that. */
const VISIBLE = 'larkspur.visible';
const MAX_RUNS = 1_000;
const MAX_CHARS = 200;
const BEEP = { hertz: 660, seconds: 0.18, volume: 0.08 };

export interface NoticeTexts {
  waits: string;
  completed: string;
  incomplete: string;
  failed: string;
  subtask: (place: SubtaskPlace) => string;
}

/** What is worth telling. `asker` is the subtask that asks, null for none. */
interface Notice {
  kind: 'waits' | 'completed' | 'incomplete' | 'failed';
  text: string;
  asker: SubtaskPlace | null;
}

/** Runs of this page and the terminal: nobody wants to hear of the end of every chat in Lark. */
const started = new Set<string>();

/** What an event is worth telling somebody who does not look, null if nothing. */
export function noticeOf(
  event: Envelope,
  own: ReadonlySet<string>,
  runs: RunMessages | null,
): Notice | null {
  if (event.event === 'workflow.question.asked') {
    const { title, reason_code: code = '' } = event.payload;
    const text = code === '' || runs === null ? title : runs.ended('error', code);
    return { kind: 'waits', text, asker: askerOf(event.payload) };
  }
  if (event.event !== 'workflow.result.final' || event.is_subtask || !own.has(event.run_id)) return null;
  const { stop_reason: reason, final_answer: answer, error = '', error_code: code = '' } = event.payload;
  if (reason === 'await_user_input' || reason === 'await_tasks') return null;
  const failed = error !== '';
  const text = failed ? (runs?.ended(reason, code) ?? '') : answer;
  const { calls_not_run: notRun = 0 } = event.payload;
  const exception = runs?.exception({ status: failed ? 'failed' : 'completed', reason, notRun }) ?? '';
  if (exception !== '') return { kind: 'incomplete', text: `${exception}: ${text}`, asker: null };
  return { kind: failed ? 'failed' : 'completed', text, asker: null };
}

/** Follow the events until the returned function is called. */
export function startNotifications(
  texts: () => NoticeTexts,
  loadRuns: () => Promise<RunMessages | null>,
): () => void {
  const release = holdWhileVisible();
  const stop = subscribe((event) => {
    if (event.event === 'workflow.input.received' && event.payload.channel !== 'lark') {
      if (started.size >= MAX_RUNS) started.clear();
      started.add(event.run_id);
    }
    const plain = noticeOf(event, started, null);
    if (plain === null || !document.hidden) return;
    void loadRuns().then((runs) => announce(event, noticeOf(event, started, runs) ?? plain, texts()));
  });
  return () => {
    stop();
    release();
  };
}

async function announce(
  event: Envelope,
  notice: Notice,
  texts: NoticeTexts,
): Promise<void> {
  if (notice.kind !== 'waits') useAttention.setState({ ended: true });
  const { notify, sound } = usePreferences.getState();
  if (!notify || (await isAnyTabVisible())) return;
  if (sound) beep();
  if (globalThis.Notification?.permission !== 'granted') return;
  let shown: Notification;
  try {
    // the tabs of a browser use the same tag, so that one notification is shown
    const tag = event.event_id ?? event.run_id;
    const body = notice.asker === null ? notice.text : `${texts.subtask(notice.asker)}: ${notice.text}`;
    shown = new Notification(texts[notice.kind], { body: body.slice(0, MAX_CHARS), tag, icon: address('/icons/icon-192.png') });
  } catch {
    return; // browsers of phones show none without a service worker
  }
  shown.addEventListener('click', () => {
    shown.close();
    window.focus();
    history.pushState(null, '', address(`/sessions/${event.session_id}`));
    dispatchEvent(new PopStateEvent('popstate'));
  });
}

function holdWhileVisible(): () => void {
  let release: (() => void) | undefined;
  const change = () => {
    release?.();
    release = undefined;
    if (document.hidden) return;
    useAttention.setState({ ended: false });
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    void navigator.locks?.request(VISIBLE, { mode: 'shared' }, () => held);
  };
  change();
  document.addEventListener('visibilitychange', change);
  return () => {
    document.removeEventListener('visibilitychange', change);
    release?.();
  };
}

async function isAnyTabVisible(): Promise<boolean> {
  const held = (await navigator.locks?.query())?.held ?? [];
  return held.some((lock) => lock.name === VISIBLE);
}

function beep(): void {
  const audio = new AudioContext();
  const tone = audio.createOscillator();
  const volume = audio.createGain();
  tone.frequency.value = BEEP.hertz;
  volume.gain.value = BEEP.volume;
  tone.connect(volume).connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + BEEP.seconds);
  tone.addEventListener('ended', () => void audio.close());
}
