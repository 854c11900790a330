/** What waits for a person over all sessions, and how it is answered. */
import { useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { create } from 'zustand';
import { api, ApiError, type QuestionsPage } from '../api/client';
import { toQuestion, type Answer, type Given, type Question } from './questions';
import { subscribe, useSessionStore } from './session_store';
import type { Envelope } from '../stream/events';
import { useMessages } from '../i18n/catalog';

/** A question that somebody else has answered just now. */
export interface AnswerNotice {
  question: Question;
  answer: Answer;
  time: string;
}

interface AnswerNotices {
  notes: readonly AnswerNotice[];
  /** Questions that this tab is answering or has answered: it needs no note of those. */
  own: ReadonlySet<string>;
  /** Questions whose answer was taken: they leave before the stream says so. */
  done: ReadonlySet<string>;
}

/** Long enough to be read, and then it is out of the way. */
const NOTE_MS = 10_000;
const QUESTIONS = ['questions'];

export const useAnswerNotices = create<AnswerNotices>(() => ({ notes: [], own: new Set(), done: new Set() }));

export function useOpenQuestions() {
  return useQuery({
    queryKey: QUESTIONS,
    queryFn: api.questions,
    refetchInterval: 15_000,
    refetchOnWindowFocus: 'always',
  });
}

/** Return what waits for an answer that this person may give. */
export function useWaitingCount(): number {
  const done = useAnswerNotices((one) => one.done);
  const { data } = useOpenQuestions();
  return (data?.questions ?? []).filter((one) => one.may_answer && !done.has(one.question_id)).length;
}

/** Follow questions of all sessions: the list is read again, and what others answer is noted. */
export function useQuestionEvents(): void {
  const queries = useQueryClient();
  useEffect(
    () =>
      subscribe((event) => {
        const ends = event.event.startsWith('workflow.result.');
        if (!ends && !event.event.startsWith('workflow.question.')) return;
        if (event.event === 'workflow.question.answered') note(queries, event);
        void queries.invalidateQueries({ queryKey: QUESTIONS });
      }),
    [queries],
  );
}

function note(
  queries: QueryClient,
  event: Extract<Envelope, { event: 'workflow.question.answered' }>,
): void {
  const answer = event.payload;
  const known = useSessionStore.getState().state.questions;
  const listed = queries.getQueryData<QuestionsPage>(QUESTIONS)?.questions ?? [];
  const view = listed.find((one) => one.question_id === answer.question_id);
  const question =
    view === undefined ? known.find((one) => one.id === answer.question_id) : toQuestion(view);
  // whom it was never shown needs no word about it
  if (question === undefined) return;
  const added: AnswerNotice = { question, answer, time: event.timestamp };
  useAnswerNotices.setState(({ notes }) => ({ notes: [...notes, added] }));
  setTimeout(() => {
    useAnswerNotices.setState(({ notes }) => ({ notes: notes.filter((one) => one !== added) }));
  }, NOTE_MS);
}

/** Hand in the answer to a question: `trouble` says why one was not taken. */
export function useAnswer(id: string) {
  const t = useMessages();
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState('');
  const answer = async (given: Given) => {
    if (useAnswerNotices.getState().own.has(id)) return;
    setBusy(true);
    setTrouble('');
    useAnswerNotices.setState(({ own }) => ({ own: new Set([...own, id]) }));
    try {
      await api.answer(id, given);
      useAnswerNotices.setState(({ done }) => ({ done: new Set([...done, id]) }));
    } catch (error) {
      useAnswerNotices.setState(({ own }) => ({ own: new Set([...own].filter((one) => one !== id)) }));
      const { status, message } = error instanceof ApiError ? error : { status: 0, message: '' };
      if (status === 401) useSessionStore.setState({ loggedOut: true });
      else setTrouble(status === 0 ? t.unreachable : message);
    }
    setBusy(false);
    void queries.invalidateQueries({ queryKey: QUESTIONS });
  };
  return { answer, busy, trouble };
}
