import { ArrowUp, Paperclip, Square } from 'lucide-react';
import {
  useCallback,
  useEffect,
  useRef,
  useState,
  Suspense,
  type KeyboardEvent,
  type ReactNode,
} from 'react';
import { api, hasStatus, isWrittenEarlier, type MeView } from '../../api/client';
import { useSessionStore } from '../../state/session_store';
import { EXAMPLE_EVENT, INSERT_EVENT, useDraft } from '../../state/draft';
import { activeRun } from '../../state/event_reducer';
import { sendAnswer, useShownQuestion } from '../../state/open_questions';
import { useFileDrop, type DroppedFiles } from '../../lib/dropped_files';
import { COMMAND, isTyping } from '../../lib/keyboard';
import { lazyComponent } from '../../lib/lazy';
import { draftFiles, isPending, setDraftFiles, useDraftFiles } from '../../state/uploads';
import { useListed } from '../../state/sessions';
import { DEFAULTS, setTaskOptions, taskFields, taskOptions } from '../../state/task_options';
import { useMovedTasks } from '../../state/moved_tasks';
import { useMessages } from '../../i18n/catalog';
import { BackgroundButton } from './background_button';

const Uploads = lazyComponent(() => import('../files/uploads').then((module) => module.Uploads));

const TaskOptions = lazyComponent(() => import('./task_options').then((module) => module.TaskOptions));

const ModeButton = lazyComponent(() => import('./task_modes').then((module) => module.ModeButton));

const ReviewButton = lazyComponent(() => import('./task_modes').then((module) => module.ReviewButton));

const STOP_AGAIN_MS = 3_000;
const RESEND_MS = 3_000;
/** A question that appeared less than this ago is not answered: the message was meant for something else. */
const GUARD_MS = 400;

export function Composer(props: {
  session: string | null;
  me: MeView | undefined;
  onStarted: (session: string) => void;
  login: ReactNode;
}) {
  const { session, onStarted } = props;
  const t = useMessages();
  const name = session ?? 'new';
  const draft = useDraft(name);
  const { me } = props;
  const used = useListed(session);
  const active = useSessionStore((one) => (session === null ? undefined : activeRun(one.state)));
  const files = useDraftFiles(name);
  /** Number of choices of files whose upload has not begun: the code for it is still loading. */
  const [adding, setAdding] = useState(0);
  const addingNow = useRef(0);
  const isUploading = adding > 0 || files.some(isPending);
  /** The message waits for its files; true if it is queued then. */
  const [held, setHeld] = useState<boolean | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState('');
  /** The server was not reached; true if the message becomes the next task. */
  const [unsent, setUnsent] = useState<boolean | null>(null);
  /** The newest event that was shown when the text was changed, and when it was sent first; '' for now. */
  const seen = useRef({ written: '', sent: '' });
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const onUnreachable = useCallback(() => setFailure(t.unreachable), [t]);
  const awaitsTasks = active?.status === 'waiting' && active.reason === 'await_tasks';
  const isWaiting = active?.status === 'waiting' && !awaitsTasks;
  const isMoved = useMovedTasks((store) => active !== undefined && store.tasks.has(active.task));
  const canSteer = active !== undefined && !isMoved && (active.status === 'running' || awaitsTasks) && files.length === 0;
  const { shown, mayAnswer } = useShownQuestion();
  /** The question that a message answers. */
  const asked = session !== null && mayAnswer && files.length === 0 ? shown : undefined;
  const askedId = asked?.id;
  const appeared = useRef({ id: askedId, time: 0 });
  useEffect(() => {
    appeared.current = { id: askedId, time: performance.now() };
  }, [askedId]);

  /** Show what a function of the queue returns. */
  const withQueue = useCallback(
    (work: (uploads: typeof import('../../state/upload_queue')) => string) =>
      import('../../state/upload_queue').then(
        (uploads) => setFailure(work(uploads)),
        () => setFailure(t.unreachable),
      ),
    [t],
  );
  const add = useCallback(
    (added: DroppedFiles) => {
      setAdding((addingNow.current += 1));
      void withQueue((uploads) => uploads.addFiles(name, added)).then(() =>
        setAdding((addingNow.current -= 1)),
      );
    },
    [name, withQueue],
  );
  const isOver = useFileDrop(add);

  const send = useCallback(
    async (text: string, queue: boolean) => {
      const isAdding = addingNow.current > 0;
      if (busy || (text.trim() === '' && files.length === 0 && !isAdding)) return;
      if (asked !== undefined && !queue && performance.now() - appeared.current.time < GUARD_MS) return;
      if (isAdding || files.some(isPending)) {
        setHeld(queue);
        return;
      }
      const failed = files.find((file) => file.status === 'failed');
      if (failed !== undefined) {
        setHeld(null);
        void withQueue((uploads) => uploads.describeFailed(failed));
        return;
      }
      setHeld(null);
      setBusy(true);
      setFailure('');
      // when it is sent again without the server, it was sent before
      if (unsent === null) seen.current.sent = useSessionStore.getState().state.cursor;
      const { written, sent } = seen.current;
      try {
        if (asked !== undefined && !queue) {
          const answer = { decision: 'text' as const, text, idempotency_key: draft.key(text) };
          await sendAnswer(asked.id, { ...answer, ...(written !== '' && { seen: written }) });
        } else if (canSteer && !queue) {
          await api.steer(active.task, text, draft.key(text), sent);
        } else {
          const options = taskOptions(name);
          const attachments = files.map(({ name: file, media_type, uri }) => ({ name: file, media_type, uri }));
          const submitted = await api.submit({
            task: text.trim() === '' ? files.map((file) => file.name).join(', ') : text,
            ...(session === null ? {} : { session_id: session }),
            attachments,
            idempotency_key: draft.key([text, ...files.map((file) => file.uri)].join('\n')),
            ...taskFields(options, used, me),
          });
          if (session === null) {
            setTaskOptions(submitted.session_id, options);
            setTaskOptions(name, DEFAULTS);
            onStarted(submitted.session_id);
          }
        }
        setUnsent(null);
        seen.current.written = '';
        draft.clear();
        // files that were added in the meantime belong to the next message
        setDraftFiles(name, draftFiles(name).filter((file) => !files.includes(file)));
      } catch (error) {
        // the draft is kept; sent again with the same key, it creates no second task
        setUnsent(hasStatus(error, 0) ? queue : null);
        // what is sent again after an answer of the server is written now
        if (!hasStatus(error, 0)) seen.current.written = '';
        if (hasStatus(error, 401)) useSessionStore.setState({ loggedOut: true });
        else setFailure(isWrittenEarlier(error) ? t.writtenBefore : (error as Error).message);
      } finally {
        setBusy(false);
      }
    },
    [active, asked, busy, draft, files, me, name, onStarted, session, canSteer, t, unsent, used, withQueue],
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

  useEffect(() => {
    const insert = (event: Event) => {
      const { detail } = event as CustomEvent<string>;
      draft.write(draft.text.trim() === '' ? detail : `${draft.text}\n\n${detail}`);
      field.current?.focus();
    };
    addEventListener(INSERT_EVENT, insert);
    return () => removeEventListener(INSERT_EVENT, insert);
  }, [draft]);

  useEffect(() => {
    if (held === null || isUploading) return undefined;
    const timer = setTimeout(() => void send(draft.text, held));
    return () => clearTimeout(timer);
  }, [draft, held, isUploading, send]);

  useEffect(() => {
    if (unsent === null || busy) return undefined;
    const retry = () => void send(draft.text, unsent);
    const timer = setTimeout(retry, RESEND_MS);
    // at once when the stream is connected again
    const stop = useSessionStore.subscribe((now, before) => {
      if (now.lostSince === null && before.lostSince !== null) retry();
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [busy, draft, send, unsent]);

  // an error about the connection is over with it
  useEffect(
    () =>
      useSessionStore.subscribe((now, before) => {
        if (now.lostSince !== null || before.lostSince === null) return;
        setFailure((text) => (text === t.unreachable ? '' : text));
      }),
    [t],
  );

  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== 'Enter' || event.shiftKey || event.altKey) return;
    // 229: Safari ends a composition before the key event that ended it
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    void send(draft.text, event.ctrlKey || event.metaKey);
  };
  const hint = asked !== undefined ? t.answerPlaceholder[asked.kind] : isMoved ? t.placeholder : awaitsTasks ? t.awaitsTasksPlaceholder : canSteer ? t.steerPlaceholder : isWaiting ? t.waitsPlaceholder : t.placeholder;
  const action = asked !== undefined ? t.answer : canSteer ? t.steer : t.send;
  const isEmpty = draft.text.trim() === '' && files.length === 0;
  const [stopping, stop] = useStop(active?.task, onUnreachable);

  return (
    <div className="mx-auto w-full max-w-[808px] flex-none px-6 pb-4 max-[719px]:px-3 max-[719px]:pb-3">
      {props.login}
      {failure !== '' && (
        <p role="alert" className="mb-1.5 text-bad">
          {failure}
        </p>
      )}
      {unsent !== null && (
        <p role="status" className="mb-1.5 text-warn">
          {t.unsent}{' '}
          <button type="button" className="underline" onClick={() => setUnsent(null)}>
            {t.dontSend}
          </button>
        </p>
      )}
      {stopping && (
        <p role="status" className="mb-1.5 text-warn">
          {t.stopAgain}
        </p>
      )}
      <div className="rounded-xl border border-line bg-raised focus-within:border-accent">
        <Suspense fallback={null}>
          <Uploads draft={name} isOver={isOver} held={held !== null} onRelease={() => setHeld(null)} />
        </Suspense>
        <textarea
          id="message"
          ref={field}
          aria-label={t.message}
          placeholder={hint}
          rows={1}
          dir="auto"
          value={draft.text}
          onChange={(event) => {
            setFailure('');
            setUnsent(null);
            seen.current.written = useSessionStore.getState().state.cursor;
            draft.write(event.target.value);
          }}
          onKeyDown={press}
          className="field-sizing-content block max-h-[40vh] min-h-11 w-full resize-none bg-transparent px-3.5 pt-2.5 pb-1 text-[15px] outline-none! placeholder:text-dim"
        />
        <div className="flex items-center gap-1 px-2 pb-2">
          <input
            ref={chooser}
            type="file"
            multiple
            hidden
            onChange={(event) => {
              add({ files: [...(event.target.files ?? [])], folder: '' });
              event.target.value = '';
            }}
          />
          <button type="button" className="bar-button" title={t.attach} aria-label={t.attach} onClick={() => chooser.current?.click()}>
            <Paperclip size={16} aria-hidden="true" />
          </button>
          <Suspense fallback={null}>
            <ModeButton session={session} me={me} />
            <TaskOptions name={name} />
            <ReviewButton session={session} />
          </Suspense>
          <span className="ml-auto flex items-center gap-1.5">
            {asked !== undefined && !isEmpty && (
              <button type="button" disabled={busy} title={`${COMMAND}Enter`} onClick={() => void send(draft.text, true)} className="bar-button w-auto! px-2 text-[13px]">
                {t.asNewTask}
              </button>
            )}
            {active !== undefined && active.status !== 'queued' && !isMoved && <BackgroundButton task={active.task} />}
            {active !== undefined && (
              <button type="button" onClick={stop} className="flex h-8 items-center gap-1.5 rounded-lg border border-line px-2.5 text-[13px] hover:bg-hover">
                <Square size={11} fill="currentColor" aria-hidden="true" />
                {t.stop}
              </button>
            )}
            <button
              type="button"
              disabled={busy || isEmpty}
              aria-label={action}
              title={action === t.send ? action : `${action} · ${COMMAND}Enter: ${t.queueHint}`}
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
