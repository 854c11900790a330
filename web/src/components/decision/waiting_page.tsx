import { Menu } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import type { QuestionView } from '../../api/client';
import { toQuestion, summaryOf, iconOf, questionTitle } from '../../state/questions';
import { formatTime } from '../../lib/format';
import { isTyping } from '../../lib/keyboard';
import { usePreferences } from '../../state/preferences';
import { useAnswerNotices, useOpenQuestions } from '../../state/open_questions';
import { useMessages } from '../../i18n/catalog';
import { useDecisionMessages } from '../../i18n/decision';
import { useRunMessages } from '../../i18n/runs';
import { AnswerNoticeView, Decision } from './decision';
import { ExpandableRow } from '../thread/row';

/** The open questions of all sessions and channels. */
export function WaitingPage({ onMenu }: { onMenu: () => void }) {
  const t = useMessages();
  const d = useDecisionMessages();
  const { data } = useOpenQuestions();
  const { notices, own, done } = useAnswerNotices();
  const questions = (data?.questions ?? []).filter((one) => !done.has(one.question_id));
  const [picked, setPicked] = useState<string | null | undefined>();
  const [selected, setSelected] = useState<string | null>(null);
  // the first question is expanded until the user expands another one or collapses it
  const first = questions.find((one) => one.may_answer)?.question_id;
  const open = picked !== null && questions.some((one) => one.question_id === picked) ? picked : picked === null ? null : first;
  const toggle = (id: string) => setPicked(open === id ? null : id);

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      const step = { j: 1, k: -1 }[event.key];
      const from = selected ?? open ?? null;
      if (event.key === 'o' && from !== null) setPicked(open === from ? null : from);
      if (step === undefined || questions.length === 0) return;
      const at = questions.findIndex((one) => one.question_id === from);
      const next = Math.min(questions.length - 1, Math.max(0, at + step));
      setSelected(questions[next]?.question_id ?? null);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [selected, open, questions]);

  return (
    <>
      <header className="flex h-12 flex-none items-center gap-2 border-b border-line px-3">
        <button type="button" className="bar-button min-[720px]:hidden" aria-label={t.menu} onClick={onMenu}>
          <Menu size={18} aria-hidden="true" />
        </button>
        <h1 className="font-semibold">{t.waiting}</h1>
        {questions.length > 0 && <span className="ml-auto pr-1 text-dim">{d.waitingFor(questions.length)}</span>}
      </header>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto max-w-[808px] px-6 py-4 max-[719px]:px-4">
          {notices
            .filter(({ question }) => !own.has(question.id))
            .map((notice) => (
              <AnswerNoticeView key={notice.question.id} notice={notice} />
            ))}
          {data !== undefined && questions.length === 0 && <p className="py-[20vh] text-center text-dim">{d.waitingLead}</p>}
          {questions.map((one) => (
            <Item
              key={one.question_id}
              view={one}
              open={one.question_id === open}
              here={one.question_id === selected}
              onToggle={toggle}
            />
          ))}
        </div>
      </div>
    </>
  );
}

function Item(props: { view: QuestionView; open: boolean; here: boolean; onToggle: (id: string) => void }) {
  const { view, ...row } = props;
  const t = useMessages();
  const d = useDecisionMessages();
  const language = usePreferences((preferences) => preferences.language);
  const runs = useRunMessages();
  const question = toQuestion(view);
  return (
    <ExpandableRow
      {...row}
      id={view.question_id}
      glyph={iconOf(view.kind)}
      tone="text-warn font-semibold"
      title={<span className="isolate-text inline-block max-w-[50vw] truncate align-bottom">{questionTitle(question, t, runs)}</span>}
      hint={summaryOf(question)}
      end={
        <>
          {t.channels[view.channel as keyof typeof t.channels] ?? view.channel} · <time dateTime={view.asked}>{formatTime(view.asked, language)}</time>
        </>
      }
    >
      <div className="mb-2 rounded-xl border border-warn-line bg-raised px-3 py-2.5">
        <Link
          href={`/sessions/${view.session_id}`}
          title={d.openSession}
          className="isolate-text mb-2 line-clamp-2 text-[13px] break-words text-accent hover:underline"
        >
          &gt; {view.task}
        </Link>
        <Decision question={question} mayAnswer={view.may_answer} active={row.open} />
      </div>
    </ExpandableRow>
  );
}
