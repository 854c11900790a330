import { ChevronRight } from 'lucide-react';
import { Suspense, useState } from 'react';
import { useMessages } from '../../i18n/catalog';
import { lazyComponent } from '../../lib/lazy';
import { useAnswerNotices, useOpenQuestions } from '../../state/open_questions';
import { useSessionStore } from '../../state/session_store';

const Decision = lazyComponent(() => import('./decision').then((module) => module.Decision));
const DecisionTitle = lazyComponent(() => import('./decision').then((module) => module.DecisionTitle));
const AnswerNoticeView = lazyComponent(() => import('./decision').then((module) => module.AnswerNoticeView));

/** The open questions of the session, one at a time, above the composer. */
export function DecisionBar({ session }: { session: string }) {
  const t = useMessages();
  const questions = useSessionStore((store) => store.state.questions);
  const { notices, own, done } = useAnswerNotices();
  const { data } = useOpenQuestions();
  const [at, setAt] = useState(0);
  const open = questions.filter((question) => question.closed === null && !done.has(question.id));
  const shownNotices = notices.filter(({ question }) => question.session === session && !own.has(question.id));
  const current = open[at % Math.max(1, open.length)];
  if (current === undefined && shownNotices.length === 0) return null;
  const listed = data?.questions.find((view) => view.question_id === current?.id);
  return (
    <Suspense fallback={null}>
      <section aria-label={t.waiting} className="mx-auto w-full max-w-[808px] flex-none px-6 pb-2 max-[719px]:px-3">
        <div className={`flex max-h-[62dvh] flex-col gap-2.5 rounded-xl border bg-raised px-3 py-2.5 ${current === undefined ? 'border-line' : 'border-warn-line'}`}>
          {shownNotices.map((notice) => (
            <AnswerNoticeView key={notice.question.id} notice={notice} />
          ))}
          {current !== undefined && (
            <Decision
              key={current.id}
              question={current}
              mayAnswer={listed?.may_answer ?? true}
              active
              heading={
                <DecisionTitle question={current}>
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
    </Suspense>
  );
}
