/** The open questions of all sessions, and how they are answered. */
import { useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { create } from 'zustand';
import { api, type AnswerInput, type QuestionsPage } from '../api/client';
import { toQuestion, type Answer, type Question } from './questions';
import { loadEarlier, subscribe, useSessionStore } from './session_store';
import type { Envelope } from '../stream/events';

/** A question that was answered elsewhere a moment ago. */
export interface AnswerNotice {
  question: Question;
  answer: Answer;
  time: string;
}

interface AnswerNotices {
  notices: readonly AnswerNotice[];
  /** Questions that this tab answers, for which no notice is shown. */
  own: ReadonlySet<string>;
  /** Questions whose answer was accepted; they are hidden before the stream closes them. */
  done: ReadonlySet<string>;
}

/** How long a notice is shown. */
const NOTICE_MS = 10_000;
export const QUESTIONS_KEY = ['questions'];

export const useAnswerNotices = create<AnswerNotices>(() => ({ notices: [], own: new Set(), done: new Set() }));

export function useOpenQuestions() {
  return useQuery({
    queryKey: QUESTIONS_KEY,
    queryFn: api.questions,
    refetchInterval: 15_000,
    refetchOnWindowFocus: 'always',
  });
}

/** Return the number of open questions that the user may answer. */
export function useWaitingCount(): number {
  const done = useAnswerNotices((notices) => notices.done);
  const { data } = useOpenQuestions();
  return (data?.questions ?? []).filter((one) => one.may_answer && !done.has(one.question_id)).length;
}

/** Which of the open questions of the session is shown above the composer. */
const usePosition = create<{ position: number }>(() => ({ position: 0 }));

/** The open questions of the session, and the one of them that is shown and that a message answers. */
export function useShownQuestion() {
  const questions = useSessionStore((store) => store.state.questions);
  const done = useAnswerNotices((notices) => notices.done);
  const { data } = useOpenQuestions();
  const { position } = usePosition();
  const open = questions.filter((question) => question.closed === null && !done.has(question.id));
  const index = position % Math.max(1, open.length);
  const shown = open[index];
  const listed = data?.questions.find((view) => view.question_id === shown?.id);
  const showNext = () => usePosition.setState({ position: (index + 1) % open.length });
  return { shown, index, count: open.length, mayAnswer: listed?.may_answer ?? true, showNext };
}

/** Load earlier events while an open question of the session is none of those that are loaded. */
export function useEarlierQuestions(): void {
  const questions = useSessionStore((store) => store.state.questions);
  const { data } = useOpenQuestions();
  const session = useSessionStore((store) => store.session);
  const earlier = useSessionStore((store) => store.earlier);
  const mayBeEarlier =
    earlier !== null &&
    data?.questions.some((view) => view.session_id === session && !questions.some((one) => one.id === view.question_id));
  useEffect(() => {
    if (mayBeEarlier && earlier !== null) void loadEarlier();
  }, [mayBeEarlier, earlier]);
}

/** Answer a question. No notice about this answer is shown, and the question is hidden once it is accepted. */
export async function sendAnswer(id: string, input: AnswerInput): Promise<void> {
  useAnswerNotices.setState(({ own }) => ({ own: new Set([...own, id]) }));
  try {
    await api.answer(id, input);
    useAnswerNotices.setState(({ done }) => ({ done: new Set([...done, id]) }));
  } catch (error) {
    useAnswerNotices.setState(({ own }) => ({ own: new Set([...own].filter((known) => known !== id)) }));
    throw error;
  }
}

/** Keep the list of open questions current, and show a notice when somebody else answers one. */
export function useQuestionEvents(): void {
  const queries = useQueryClient();
  useEffect(
    () =>
      subscribe((event) => {
        const ends = event.event.startsWith('workflow.result.');
        if (!ends && !event.event.startsWith('workflow.question.')) return;
        if (ends && !mayHaveOpenQuestion(queries, event.run_id)) return;
        if (event.event === 'workflow.question.answered') addNotice(queries, event);
        void queries.invalidateQueries({ queryKey: QUESTIONS_KEY });
      }),
    [queries],
  );
}

/** The end of a run closes its questions. Most runs have none, and then nothing needs to be read again. */
function mayHaveOpenQuestion(queries: QueryClient, runId: string): boolean {
  if (queries.isFetching({ queryKey: QUESTIONS_KEY }) > 0) return true;
  const listed = queries.getQueryData<QuestionsPage>(QUESTIONS_KEY)?.questions ?? [];
  return listed.some((one) => one.run_id === runId);
}

function addNotice(
  queries: QueryClient,
  event: Extract<Envelope, { event: 'workflow.question.answered' }>,
): void {
  const answer = event.payload;
  const known = useSessionStore.getState().state.questions;
  const listed = queries.getQueryData<QuestionsPage>(QUESTIONS_KEY)?.questions ?? [];
  const view = listed.find((one) => one.question_id === answer.question_id);
  const question =
    view === undefined ? known.find((one) => one.id === answer.question_id) : toQuestion(view);
  // a question that was never shown needs no notice
  if (question === undefined) return;
  const added: AnswerNotice = { question, answer, time: event.timestamp };
  useAnswerNotices.setState(({ notices }) => ({ notices: [...notices, added] }));
  setTimeout(() => {
    useAnswerNotices.setState(({ notices }) => ({ notices: notices.filter((one) => one !== added) }));
  }, NOTICE_MS);
}
