import { ArrowUp, ListChecks, Paperclip, Square, X } from 'lucide-react';
import {
  useCallback,
  useEffect,
  useRef,
  useState,
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  type ReactNode,
} from 'react';
import { api, ApiError } from '../../api/client';
import { useSessionStore } from '../../state/session_store';
import { useDraft } from '../../state/draft';
import { MAX_FILE_BYTES, upload } from '../../api/uploads';
import { activeRun } from '../../state/event_reducer';
import { COMMAND, isTyping } from '../../lib/keyboard';
import { setPreferences, usePreferences, type Mode } from '../../state/preferences';
import { formatSize } from '../../lib/format';
import { useMessages } from '../../i18n/catalog';
import { EXAMPLE_EVENT } from '../thread/welcome';

const MODES: Mode[] = ['ask', 'plan', 'accept-edits', 'full'];
const STOP_AGAIN_MS = 3_000;

export function Composer(props: {
  session: string | null;
  onStarted: (session: string) => void;
  login: ReactNode;
}) {
  const { session, onStarted } = props;
  const t = useMessages();
  const draft = useDraft(session ?? 'new');
  const { mode, review } = usePreferences();
  const active = useSessionStore((one) => (session === null ? undefined : activeRun(one.state)));
  const [files, setFiles] = useState<File[]>([]);
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const unreached = useCallback(() => setTrouble(t.unreachable), [t]);
  const waits = active?.status === 'waiting';
  const steers = active !== undefined && active.status === 'running' && files.length === 0;

  const add = (given: Iterable<File>) => {
    const all = [...given];
    const large = all.find((file) => file.size > MAX_FILE_BYTES);
    setTrouble(large === undefined ? '' : t.tooLarge(large.name));
    setFiles((now) => [...now, ...all.filter((file) => file.size <= MAX_FILE_BYTES)]);
  };

  const send = useCallback(
    async (text: string, queue: boolean) => {
      if (busy || (text.trim() === '' && files.length === 0)) return;
      setBusy(true);
      setTrouble('');
      try {
        if (steers && !queue) {
          await api.steer(active.task, text);
        } else {
          const given = await Promise.all(files.map((file) => upload(file, t)));
          const submitted = await api.submit({
            task: text.trim() === '' ? files.map((file) => file.name).join(', ') : text,
            ...(session === null ? {} : { session_id: session }),
            attachments: given,
            idempotency_key: draft.key(text),
            ...(usePreferences.getState().review && { plan_review: 'always' as const }),
            options: { permission_mode: usePreferences.getState().mode },
          });
          if (session === null) onStarted(submitted.session_id);
        }
        draft.clear();
        setFiles([]);
      } catch (error) {
        // the text is kept; with the same key a second try makes no second task
        if (error instanceof ApiError && error.status === 401) {
          useSessionStore.setState({ loggedOut: true });
        } else if (error instanceof ApiError && error.status === 0) setTrouble(t.unreachable);
        else setTrouble((error as Error).message);
      } finally {
        setBusy(false);
      }
    },
    [active, busy, draft, files, onStarted, session, steers, t],
  );

  useEffect(() => {
    const take = (event: Event) => {
      const text = (event as CustomEvent<string>).detail;
      draft.write(text);
      void send(text, false);
    };
    addEventListener(EXAMPLE_EVENT, take);
    return () => removeEventListener(EXAMPLE_EVENT, take);
  }, [draft, send]);

  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== 'Enter' || event.shiftKey || event.altKey) return;
    // 229: Safari ends a composition before it tells of the key that ended it
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    void send(draft.text, event.ctrlKey || event.metaKey);
  };
  const paste = (event: ClipboardEvent) => {
    const given = [...event.clipboardData.files];
    if (given.length === 0) return;
    event.preventDefault();
    add(given);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    add(event.dataTransfer.files);
  };
  const hint = steers ? t.steerPlaceholder : waits ? t.waitsPlaceholder : t.placeholder;
  const [stopping, stop] = useStop(active?.task, unreached);

  return (
    <div className="mx-auto w-full max-w-[808px] flex-none px-6 pb-4 max-[719px]:px-3 max-[719px]:pb-3">
      {props.login}
      {trouble !== '' && (
        <p role="alert" className="mb-1.5 text-bad">
          {trouble}
        </p>
      )}
      {stopping && (
        <p role="status" className="mb-1.5 text-warn">
          {t.stopAgain}
        </p>
      )}
      <div
        onDrop={drop}
        onDragOver={(event) => event.preventDefault()}
        className="rounded-xl border border-line bg-raised focus-within:border-accent"
      >
        {files.length > 0 && (
          <ul className="flex flex-wrap gap-2 px-3 pt-3">
            {files.map((file, index) => (
              // oxlint-disable-next-line react/no-array-index-key
              <li key={index} className="flex max-w-64 items-center gap-2 rounded-lg border border-line px-2 py-1">
                <span className="truncate">{file.name}</span>
                <span className="flex-none text-xs text-dim">{formatSize(file.size)}</span>
                <button
                  type="button"
                  aria-label={t.remove(file.name)}
                  onClick={() => setFiles(files.filter((_, at) => at !== index))}
                  className="flex-none text-dim hover:text-ink"
                >
                  <X size={14} aria-hidden="true" />
                </button>
              </li>
            ))}
          </ul>
        )}
        <textarea
          id="message"
          ref={field}
          aria-label={t.message}
          placeholder={hint}
          rows={1}
          dir="auto"
          value={draft.text}
          onChange={(event) => draft.write(event.target.value)}
          onKeyDown={press}
          onPaste={paste}
          className="field-sizing-content block max-h-[40vh] min-h-11 w-full resize-none bg-transparent px-3.5 pt-2.5 pb-1 text-[15px] outline-none! placeholder:text-dim"
        />
        <div className="flex items-center gap-1 px-2 pb-2">
          <input
            ref={chooser}
            type="file"
            multiple
            hidden
            onChange={(event) => {
              add(event.target.files ?? []);
              event.target.value = '';
            }}
          />
          <button type="button" className="bar-button" title={t.attach} aria-label={t.attach} onClick={() => chooser.current?.click()}>
            <Paperclip size={16} aria-hidden="true" />
          </button>
          <label className="flex items-center">
            <span className="sr-only">{t.mode}</span>
            <select
              value={mode}
              onChange={(event) => setPreferences({ mode: event.target.value as Mode })}
              className="field-sizing-content h-8 rounded-lg bg-transparent px-1.5 text-[13px] text-dim hover:bg-hover hover:text-ink"
            >
              {MODES.map((one) => (
                <option key={one} value={one} className="bg-raised text-ink">
                  {t.modes[one]}
                </option>
              ))}
            </select>
          </label>
          <button
            type="button"
            aria-pressed={review}
            aria-label={t.reviewPlan}
            title={t.reviewPlan}
            onClick={() => setPreferences({ review: !review })}
            className={`bar-button w-auto! gap-1.5 px-2 text-[13px] ${review ? 'text-accent!' : ''}`}
          >
            <ListChecks size={16} aria-hidden="true" />
            {review && <span className="max-[719px]:hidden">{t.reviewPlan}</span>}
          </button>
          <span className="ml-auto flex items-center gap-1.5">
            {active !== undefined && (
              <button type="button" onClick={stop} className="flex h-8 items-center gap-1.5 rounded-lg border border-line px-2.5 text-[13px] hover:bg-hover">
                <Square size={11} fill="currentColor" aria-hidden="true" />
                {t.stop}
              </button>
            )}
            <button
              type="button"
              disabled={busy || (draft.text.trim() === '' && files.length === 0)}
              aria-label={steers ? t.steer : t.send}
              title={steers ? `${t.steer} · ${COMMAND}Enter: ${t.queueHint}` : t.send}
              onClick={() => void send(draft.text, false)}
              className="flex size-8 items-center justify-center rounded-lg bg-accent text-on-accent disabled:bg-hover disabled:text-dim"
            >
              <ArrowUp size={17} aria-hidden="true" />
            </button>
          </span>
        </div>
      </div>
    </div>
  );
}

/** The button stops at once; Esc asks once before it does. */
function useStop(task: string | undefined, onUnreached: () => void): [boolean, () => void] {
  const [askedFor, setAskedFor] = useState<string>();
  const asked = task !== undefined && askedFor === task;
  const stop = useCallback(() => {
    setAskedFor(undefined);
    // a run that has just ended needs no stopping
    if (task === undefined) return;
    api.stop(task).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 0) onUnreached();
    });
  }, [onUnreached, task]);
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent) => {
      const composer = event.target instanceof HTMLElement && event.target.id === 'message';
      if (event.key !== 'Escape' || event.isComposing || task === undefined) return;
      if (isTyping(event) && !composer) return;
      if (asked) stop();
      else setAskedFor(task);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [asked, stop, task]);
  useEffect(() => {
    if (!asked) return undefined;
    const timer = setTimeout(() => setAskedFor(undefined), STOP_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [asked]);
  return [asked, stop];
}
