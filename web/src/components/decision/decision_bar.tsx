import { ChevronRight } from 'lucide-react';
import { Suspense } from 'react';
import { useMessages } from '../../i18n/catalog';
import { lazyComponent } from '../../lib/lazy';
import { useAnswerNotices, useEarlierQuestions, useShownQuestion } from '../../state/open_questions';

const Decision = lazyComponent(() => import('./decision').then((module) => module.Decision));
const DecisionTitle = lazyComponent(() => import('./decision').then((module) => module.DecisionTitle));
const AnswerNoticeView = lazyComponent(() => import('./decision').then((module) => module.AnswerNoticeView));

/** The open questions of the session, one at a time, above the composer. */
export function DecisionBar({ session }: { session: string }) {
  const t = useMessages();
  const { notices, own } = useAnswerNotices();
  useEarlierQuestions();
  const { shown: current, index, count, mayAnswer, showNext } = useShownQuestion();
  const shownNotices = notices.filter(({ question }) => question.session === session && !own.has(question.id));
  if (current === undefined && shownNotices.length === 0) return null;
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
              mayAnswer={mayAnswer}
              active
              heading={
                <DecisionTitle question={current}>
                  {count > 1 && (
                    <button
                      type="button"
                      title={t.nextQuestion}
                      onClick={showNext}
                      className="flex flex-none items-center rounded-lg text-[13px] leading-[21px] text-dim tabular-nums hover:text-ink"
                    >
                      {index + 1}/{count}
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
