/** Feedback on the answer of a task: a rating and a comment. */
import { MessageSquareText, ThumbsDown, ThumbsUp } from 'lucide-react';
import { useEffect, useState } from 'react';
import { create } from 'zustand';
import { api } from '../../api/client';
import type { Feedback } from '../../api/types.gen';
import { useRunActionMessages } from '../../i18n/run_actions';
import { useSessionStore } from '../../state/session_store';
import { useAttempt } from '../layout/use_attempt';
import { Action, Failure } from './action';

const MAX_COMMENT_CHARACTERS = 2_000;

type Rating = NonNullable<Feedback['rating']>;

interface FeedbackStore {
  session: string;
  given: Readonly<Record<string, Feedback | null>>;
}

/** The feedback on the tasks of the session that is shown. */
const useFeedbackStore = create<FeedbackStore>(() => ({ session: '', given: {} }));

async function loadFeedback(session: string): Promise<void> {
  if (useFeedbackStore.getState().session === session) return;
  useFeedbackStore.setState({ session, given: {} });
  let cursor: string | null = '';
  while (cursor !== null && useFeedbackStore.getState().session === session) {
    // oxlint-disable-next-line no-await-in-loop -- a page names the next one
    const page = await api.tasks(session, cursor);
    const loaded = Object.fromEntries(page.tasks.map((task) => [task.task_id, task.feedback]));
    // what was given meanwhile is newer
    useFeedbackStore.setState((store) => (store.session === session ? { given: { ...loaded, ...store.given } } : store));
    cursor = page.next;
  }
}

/** Buttons that rate the answer of a run; a rating can be explained with a comment. */
export function FeedbackButtons({ run }: { run: string }) {
  const a = useRunActionMessages();
  const session = useSessionStore((store) => store.session) ?? '';
  const task = useSessionStore((store) => store.state.runs.find((one) => one.run === run)?.task) ?? '';
  const given = useFeedbackStore((store) => store.given[task]) ?? null;
  const comment = given?.comment ?? '';
  const [draft, setDraft] = useState<string | null>(null);
  const [failure, busy, attempt] = useAttempt();
  useEffect(() => {
    loadFeedback(session).catch(() => useFeedbackStore.setState({ session: '' }));
  }, [session]);

  // the comment is written until it is stored
  const rate = (rating: Rating | null, words: string, nextDraft: string | null) =>
    attempt(async () => {
      const { feedback } = await api.rate(task, rating, words);
      useFeedbackStore.setState((store) => ({ given: { ...store.given, [task]: feedback } }));
      setDraft(nextDraft);
    });
  const press = (rating: Rating) =>
    void (given?.rating === rating ? rate(null, '', null) : rate(rating, comment, draft ?? comment));
  const button = (rating: Rating, Icon: typeof ThumbsUp, name: string) => {
    const pressed = given?.rating === rating;
    return (
      <Action
        icon={<Icon size={13} fill={pressed ? 'currentColor' : 'none'} />}
        name={name}
        busy={busy}
        pressed={pressed}
        onClick={() => press(rating)}
        quiet
      />
    );
  };
  return (
    <>
      {button('up', ThumbsUp, a.good)}
      {button('down', ThumbsDown, a.bad)}
      {given !== null && draft === null && (
        <Action icon={<MessageSquareText size={13} />} name={a.comment} busy={busy} onClick={() => setDraft(comment)} quiet />
      )}
      {draft === null && comment !== '' && (
        <span dir="auto" className="isolate-text max-w-80 truncate">
          {comment}
        </span>
      )}
      {draft !== null && (
        <form
          className="inline-flex max-w-full flex-wrap items-center gap-1.5"
          onSubmit={(event) => {
            event.preventDefault();
            void rate(given?.rating ?? null, draft.trim(), null);
          }}
        >
          <input
            type="text"
            dir="auto"
            aria-label={a.comment}
            placeholder={a.commentHint}
            maxLength={MAX_COMMENT_CHARACTERS}
            value={draft}
            onChange={(event) => setDraft(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Escape') return;
              event.stopPropagation();
              setDraft(null);
            }}
            className="min-h-7 w-64 max-w-full rounded-lg border border-line bg-bg px-2 text-ink"
          />
          <button type="submit" className="choice min-h-7! py-0!" disabled={busy}>
            {a.save}
          </button>
          <button type="button" className="choice min-h-7! py-0!" onClick={() => setDraft(null)}>
            {a.cancel}
          </button>
        </form>
      )}
      <Failure text={failure} />
    </>
  );
}
