import { CornerDownLeft, Pencil, Undo2, X } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useWaitingTexts } from '../../i18n/waiting_messages';
import { INSERT_EVENT } from '../../state/draft';
import { activeRun } from '../../state/event_reducer';
import { useSessionStore } from '../../state/session_store';
import { editWaiting, followWaiting, takeBack, useWaitingMessages, type WaitingMessage } from '../../state/waiting_messages';
import { useAttempt } from '../layout/use_attempt';
import { Action, Failure } from './action';

/** The messages that no model has read, below the thread. */
export function WaitingMessages({ session }: { session: string }) {
  const messages = useWaitingMessages(session);
  const active = useSessionStore((store) => activeRun(store.state)?.run);
  useEffect(() => followWaiting(session), [session]);
  // the first task of a session waits for nobody
  const shown = messages.filter((one) => one.waits_for !== 'next_task' || (active !== undefined && one.run_id !== active));
  return shown.map((one) => <Row key={one.number} session={session} message={one} />);
}

function Row({ session, message }: { session: string; message: WaitingMessage }) {
  const t = useWaitingTexts();
  const [text, setText] = useState<string | null>(null);
  const [failure, busy, attempt] = useAttempt();
  const isBack = message.waits_for === 'given_back';
  const insert = () =>
    attempt(async () => {
      await takeBack(session, message.number);
      dispatchEvent(new CustomEvent(INSERT_EVENT, { detail: message.text }));
    });
  if (text !== null) {
    return (
      <form
        className="py-1"
        onSubmit={(event) => {
          event.preventDefault();
          void attempt(async () => {
            await editWaiting(session, message.number, text);
            setText(null);
          });
        }}
      >
        <textarea
          aria-label={t.text}
          // oxlint-disable-next-line jsx-a11y/no-autofocus -- the person has just asked for it
          autoFocus
          dir="auto"
          value={text}
          onChange={(event) => setText(event.target.value)}
          className="field-sizing-content block max-h-[40vh] min-h-11 w-full resize-none rounded-lg border border-line bg-bg px-3 py-2"
        />
        <span className="mt-1.5 flex flex-wrap gap-1.5">
          <button type="submit" className="choice choice-primary" disabled={busy || text.trim() === ''}>
            {t.save}
          </button>
          <button type="button" className="choice" onClick={() => setText(null)}>
            {t.cancel}
          </button>
          <Failure text={failure} />
        </span>
      </form>
    );
  }
  return (
    <div data-testid="waiting-message" className="flex flex-wrap items-center gap-x-3 gap-y-1 rounded-lg py-1.5 text-dim">
      <span className="flex min-w-0 flex-1 basis-64 gap-1.5">
        <span className="glyph" aria-hidden="true">
          {isBack ? '■' : '↳'}
        </span>
        <span className="min-w-0">
          <span dir="auto" className={`break-words whitespace-pre-wrap ${message.waits_for === 'next_task' ? 'line-clamp-1' : 'line-clamp-6'} ${isBack ? 'text-ink' : ''}`}>
            {message.text}
          </span>
          <span className={`text-[13px] ${isBack ? 'text-warn' : ''}`}>{t[message.waits_for]}</span>
        </span>
      </span>
      <span className="flex flex-wrap items-center gap-1">
        {isBack ? (
          <>
            <Action icon={<CornerDownLeft size={13} />} name={t.insert} busy={busy} onClick={insert} />
            <Action icon={<X size={13} />} name={t.dismiss} busy={busy} onClick={() => attempt(() => takeBack(session, message.number))} />
          </>
        ) : (
          <>
            <Action icon={<Pencil size={13} />} name={t.edit} busy={busy} onClick={() => setText(message.text)} />
            <Action icon={<Undo2 size={13} />} name={t.takeBack} busy={busy} onClick={insert} />
          </>
        )}
        <Failure text={failure} />
      </span>
    </div>
  );
}
