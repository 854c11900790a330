import { ChevronRight } from 'lucide-react';
import { useState } from 'react';
import { useSessionStore } from '../../state/session_store';
import { useAnswerNotices, useOpenQuestions } from '../../state/open_questions';
import { useMessages } from '../../i18n/catalog';
import { Answered, Decision, DecisionTitle } from './decision';

/** What waits in the shown session stands above the composer, one question at a time. */
export function DecisionBar({ session }: { session: string }) {
  const t = useMessages();
  const questions = useSessionStore((one) => one.state.questions);
  const { notes, own, done } = useAnswerNotices();
  const { data } = useOpenQuestions();
  const [at, setAt] = useState(0);
  const open = questions.filter((one) => one.closed === null && !done.has(one.id));
  const told = notes.filter(({ question }) => question.session === session && !own.has(question.id));
  const shown = open[at % Math.max(1, open.length)];
  if (shown === undefined && told.length === 0) return null;
  const listed = data?.questions.find((one) => one.question_id === shown?.id);
  return (
    <section aria-label={t.waiting} className="mx-auto w-full max-w-[808px] flex-none px-6 pb-2 max-[719px]:px-3">
      <div className={`flex max-h-[62dvh] flex-col gap-2.5 rounded-xl border bg-raised px-3 py-2.5 ${shown === undefined ? 'border-line' : 'border-warn-line'}`}>
        {told.map((note) => (
          <Answered key={note.question.id} note={note} />
        ))}
        {shown !== undefined && (
          <Decision
            key={shown.id}
            question={shown}
            mayAnswer={listed?.may_answer ?? true}
            active
            heading={
              <DecisionTitle question={shown}>
                {open.length > 1 && (
                  <button
                    type="button"
                    title={t.nextQuestion}
                    onClick={() => setAt((at + 1) % open.length)}
                    className="flex flex-none items-center rounded-lg text-[13px] leading-[21px] text-dim tabular-nums hover:text-ink"
                  >
                    {(at % open.length) + 1}/{open.length}
                    <ChevronRight size={14} aria-label={t.nextQuestion} />
                  </button>
                )}
              </DecisionTitle>
            }
          />
        )}
      </div>
    </section>
  );
}
