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
import { api, hasStatus } from '../../api/client';
import { useSessionStore } from '../../state/session_store';
import { EXAMPLE_EVENT, useDraft } from '../../state/draft';
import { activeRun } from '../../state/event_reducer';
import { COMMAND, isTyping } from '../../lib/keyboard';
import { setPreferences, usePreferences, type Mode } from '../../state/preferences';
import { formatSize } from '../../lib/format';
import { useMessages, type Messages } from '../../i18n/catalog';

const MODES: Mode[] = ['ask', 'plan', 'accept-edits', 'full'];
/** The server accepts bodies of 20 MiB, and base64 turns three bytes into four. */
const MAX_FILE_BYTES = 14_000_000;
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
  const [failure, setFailure] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const onUnreachable = useCallback(() => setFailure(t.unreachable), [t]);
  const isWaiting = active?.status === 'waiting';
  const canSteer = active !== undefined && active.status === 'running' && files.length === 0;

  const add = (added: Iterable<File>) => {
    const all = [...added];
    const large = all.find((file) => file.size > MAX_FILE_BYTES);
    setFailure(large === undefined ? '' : t.tooLarge(large.name));
    setFiles((now) => [...now, ...all.filter((file) => file.size <= MAX_FILE_BYTES)]);
  };

  const send = useCallback(
    async (text: string, queue: boolean) => {
      if (busy || (text.trim() === '' && files.length === 0)) return;
      setBusy(true);
      setFailure('');
      try {
        if (canSteer && !queue) {
          await api.steer(active.task, text);
        } else {
          const attachments = files.length === 0 ? [] : await uploadAll(files, t);
          const submitted = await api.submit({
            task: text.trim() === '' ? files.map((file) => file.name).join(', ') : text,
            ...(session === null ? {} : { session_id: session }),
            attachments,
            idempotency_key: draft.key(text),
            ...(usePreferences.getState().review && { plan_review: 'always' as const }),
            options: { permission_mode: usePreferences.getState().mode },
          });
          if (session === null) onStarted(submitted.session_id);
        }
        draft.clear();
        setFiles([]);
      } catch (error) {
        // the draft is kept; sent again with the same key, it creates no second task
        if (hasStatus(error, 401)) useSessionStore.setState({ loggedOut: true });
        else setFailure((error as Error).message || t.unreachable);
      } finally {
        setBusy(false);
      }
    },
    [active, busy, draft, files, onStarted, session, canSteer, t],
  );

  useEffect(() => {
    const submitExample = (event: Event) => {
      const text = (event as CustomEvent<string>).detail;
      draft.write(text);
      void send(text, false);
    };
    addEventListener(EXAMPLE_EVENT, submitExample);
    return () => removeEventListener(EXAMPLE_EVENT, submitExample);
  }, [draft, send]);

  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== 'Enter' || event.shiftKey || event.altKey) return;
    // 229: Safari ends a composition before the key event that ended it
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    void send(draft.text, event.ctrlKey || event.metaKey);
  };
  const paste = (event: ClipboardEvent) => {
    const pasted = [...event.clipboardData.files];
    if (pasted.length === 0) return;
    event.preventDefault();
    add(pasted);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    add(event.dataTransfer.files);
  };
  const hint = canSteer ? t.steerPlaceholder : isWaiting ? t.waitsPlaceholder : t.placeholder;
  const [stopping, stop] = useStop(active?.task, onUnreachable);

  return (
    <div className="mx-auto w-full max-w-[808px] flex-none px-6 pb-4 max-[719px]:px-3 max-[719px]:pb-3">
      {props.login}
      {failure !== '' && (
        <p role="alert" className="mb-1.5 text-bad">
          {failure}
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
              aria-label={canSteer ? t.steer : t.send}
              title={canSteer ? `${t.steer} · ${COMMAND}Enter: ${t.queueHint}` : t.send}
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

async function uploadAll(files: readonly File[], t: Messages) {
  const { upload } = await import('../../api/files');
  return Promise.all(files.map((file) => upload(file, t)));
}

/** The button stops the run at once; Esc must be pressed twice. */
function useStop(task: string | undefined, onUnreachable: () => void): [boolean, () => void] {
  const [confirmFor, setConfirmFor] = useState<string>();
  const isConfirming = task !== undefined && confirmFor === task;
  const stop = useCallback(() => {
    setConfirmFor(undefined);
    // the run may have ended in the meantime
    if (task === undefined) return;
    api.stop(task).catch((error: unknown) => {
      if (hasStatus(error, 0)) onUnreachable();
    });
  }, [onUnreachable, task]);
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent) => {
      const composer = event.target instanceof HTMLElement && event.target.id === 'message';
      if (event.key !== 'Escape' || event.isComposing || task === undefined) return;
      if (isTyping(event) && !composer) return;
      if (isConfirming) stop();
      else setConfirmFor(task);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [isConfirming, stop, task]);
  useEffect(() => {
    if (!isConfirming) return undefined;
    const timer = setTimeout(() => setConfirmFor(undefined), STOP_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [isConfirming]);
  return [isConfirming, stop];
}
