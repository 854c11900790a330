import { memo, Suspense, useRef } from 'react';
import { askerOf, summaryOf, iconOf, answerLabel, questionTitle, answererName } from '../../state/questions';
import {
  isOver as isEnded,
  type EndLine,
  type InputLine,
  type LeftOutLine,
  type Line,
  type LiveNode,
  type OwnCommandLine,
  type PlanLine,
  type QuestionLine,
  type SayLine,
} from '../../state/session_state';
import { useSessionStore } from '../../state/session_store';
import { usePreferences } from '../../state/preferences';
import { formatCost, formatCount, formatDuration, formatTime } from '../../lib/format';
import { useMessages } from '../../i18n/catalog';
import { useRunMessages } from '../../i18n/runs';
import { lazyComponent } from '../../lib/lazy';
import { CallNotRun } from './call_not_run';
import { MarkdownView } from './markdown_view';
import { NoteRow, ExpandableRow, SentenceRow, StaticRow, Text, useFocus, type RowProps } from './row';
import { PlanSteps, PlanView, stepProgress } from './plan_steps';
import { Tool } from './tool_call';

const FileChips = lazyComponent(() => import('../files/file_chips').then((module) => module.FileChips));
const RunFiles = lazyComponent(() => import('../files/file_chips').then((module) => module.RunFiles));
const RunActions = lazyComponent(() => import('./run_actions').then((module) => module.RunActions));
const EditMessage = lazyComponent(() => import('./run_actions').then((module) => module.EditMessage));
const PermissionCalls = lazyComponent(() =>
  import('../decision/permission_calls').then((module) => module.PermissionCalls),
);

/** One line of the conversation. */
export const LineView = memo(function LineView(
  props: RowProps & { line: Line; live: LiveNode | undefined },
) {
  const t = useMessages();
  const { line, live, ...row } = props;
  switch (line.kind) {
    case 'input':
      return <Input line={line} {...row} />;
    case 'own-command':
      return <OwnCommand line={line} {...row} />;
    case 'say':
      return <Say line={line} {...row} />;
    case 'tool':
      return <Tool line={line} live={live} {...row} />;
    case 'plan':
      return <Plan line={line} {...row} />;
    case 'question':
      return <Question line={line} {...row} />;
    case 'thought':
      return (
        <ExpandableRow {...row} id={line.key} glyph="·" tone="text-dim" title={t.thought(formatDuration(Math.max(MIN_THOUGHT_MS, line.duration)))} quiet>
          <Text>{line.text}</Text>
        </ExpandableRow>
      );
    case 'left-out':
      return <LeftOut line={line} {...row} />;
    case 'not-run':
      return <CallNotRun line={line} {...row} />;
    case 'end':
      return <End line={line} {...row} />;
    case 'subtask':
      return null; // lanes are shown side by side, see lanes.tsx
  }
});

function LeftOut({ line, here }: RowProps & { line: LeftOutLine }) {
  const runs = useRunMessages();
  return (
    <SentenceRow here={here}>{runs?.leftOut(line.parts)}</SentenceRow>
  );
}

/** A reply while it is streamed. */
export function LiveView({ node, here }: { node: LiveNode; here: boolean }) {
  const t = useMessages();
  const runs = useRunMessages();
  return (
    <StaticRow glyph="●" tone="text-ink" here={here}>
      {node.again && <p className="mb-1 text-dim">{runs?.startsOver}</p>}
      <MarkdownView text={node.text} growing />
      {node.hole && <p className="mt-1 text-dim">{t.lost}</p>}
    </StaticRow>
  );
}

const MIN_THOUGHT_MS = 1_000;
const MAX_COLLAPSED_CHARS = 400;

function Input({ line, ...row }: RowProps & { line: InputLine }) {
  const t = useMessages();
  const language = usePreferences((preferences) => preferences.language);
  const box = useRef<HTMLDivElement>(null);
  useFocus(box, row.here);
  const isOver = useSessionStore((store) => store.state.runs.some((run) => run.run === line.run && isEnded(run.status)));
  if (line.resumed || (line.channel === 'tasks' && !line.steer)) {
    return (
      <NoteRow glyph="·" here={row.here}>
        <span className="min-w-0 flex-1">{line.resumed ? t.resumed : t.report}</span>
        <time dateTime={line.time}>{formatTime(line.time, language)}</time>
      </NoteRow>
    );
  }
  const long = line.text.length > MAX_COLLAPSED_CHARS || line.text.split('\n').length > 6;
  return (
    <div className={line.steer ? 'py-1' : 'pt-5 pb-1 first:pt-0'}>
      <div ref={box} tabIndex={-1} className="group relative flex gap-1.5 rounded-lg border border-line bg-side py-2 pr-3 pl-1">
        <span className="glyph pt-px text-dim" aria-hidden="true">
          {line.steer ? '↳' : '>'}
        </span>
        <div className="min-w-0 flex-1">
          <span className="sr-only">{line.steer ? t.steered : t.you}: </span>
          <p dir="auto" className={`break-words whitespace-pre-wrap ${long && !row.open ? 'line-clamp-4' : ''}`}>
            {line.text}
          </p>
          {long && (
            <button type="button" aria-expanded={row.open} className="mt-1 text-[13px] text-accent hover:underline" onClick={() => row.onToggle(line.key)}>
              {row.open ? t.close : t.showAll(formatCount(line.text.length))}
            </button>
          )}
          {isOver && !line.steer && (
            <Suspense fallback={null}>
              <EditMessage line={line} />
            </Suspense>
          )}
          {line.attachments.length > 0 && (
            <div className="mt-2">
              <Suspense fallback={null}>
                <FileChips files={line.attachments} />
              </Suspense>
            </div>
          )}
        </div>
        <span className="flex-none text-right text-xs leading-[21px] text-dim tabular-nums">
          {line.channel !== 'web' && <span className="mr-2">{t.via(t.channels[line.channel as keyof typeof t.channels] ?? line.channel)}</span>}
          {line.steer && <span className="mr-2">{t.steered}</span>}
          <time dateTime={line.time}>{formatTime(line.time, language)}</time>
        </span>
      </div>
    </div>
  );
}

/** A command that the person ran; the model read it with the message below. */
function OwnCommand({ line, ...row }: RowProps & { line: OwnCommandLine }) {
  const t = useMessages();
  const runs = useRunMessages();
  const failure = line.code === 0 ? '' : (runs?.callFailure({ exit: line.code }) ?? '');
  return (
    <ExpandableRow
      {...row}
      id={line.key}
      glyph="$"
      tone="text-dim"
      title={<span className="sr-only">{t.ownCommand}</span>}
      hint={<span className="isolate-text font-mono text-[13px] text-ink">{line.command}</span>}
      end={failure !== '' && <span className="text-bad">{failure}</span>}
    >
      <pre tabIndex={0} aria-label={t.ownCommand} className="max-h-80 overflow-auto rounded-lg border border-line bg-side px-3 py-2 font-mono text-[13px] break-words whitespace-pre-wrap">
        {line.output === '' ? <span className="text-dim">{t.nothing}</span> : line.output}
      </pre>
    </ExpandableRow>
  );
}

/** Answers are shown in full; long remarks between tool calls are collapsed to one line. */
function Say({ line, ...row }: RowProps & { line: SayLine }) {
  const t = useMessages();
  const remark = line.calls > 0 && (line.text.length > 110 || line.text.includes('\n'));
  if (remark && !row.open) {
    return (
      <ExpandableRow {...row} id={line.key} glyph="●" tone="text-dim" title={<span className="sr-only">{t.agent}</span>} hint={line.text.replaceAll('\n', ' ')}>
        {null}
      </ExpandableRow>
    );
  }
  return (
    <StaticRow glyph="●" tone={line.calls > 0 ? 'text-dim' : 'text-ink'} here={row.here}>
      <MarkdownView text={line.text} />
    </StaticRow>
  );
}

function Plan({ line, ...row }: RowProps & { line: PlanLine }) {
  const t = useMessages();
  const isOver = useSessionStore((store) => store.state.runs.some((run) => run.run === line.run && isEnded(run.status)));
  return (
    <ExpandableRow {...row} id={line.key} glyph="▣" tone="text-accent" title={t.plan} hint={line.goal} end={line.steps.length > 0 ? stepProgress(line.steps) : ''}>
      <PlanSteps plan={line} isOver={isOver} />
    </ExpandableRow>
  );
}

function Question({ line, ...row }: RowProps & { line: QuestionLine }) {
  const t = useMessages();
  const { asked, answered } = line;
  const { kind, plan, calls = [] } = asked;
  const runs = useRunMessages();
  const end = answered && `${answerLabel(kind, answered, t)} · ${answererName(answered, t)}`;
  return (
    <ExpandableRow
      {...row}
      id={line.key}
      glyph={iconOf(kind)}
      tone={answered ? 'text-dim' : 'text-warn'}
      title={<span className="isolate-text">{questionTitle({ kind, title: asked.title, calls, reasonCode: asked.reason_code ?? '', asker: askerOf(asked) }, t, runs, true)}</span>}
      // each call has a row of its own, or stands in the bar
      hint={calls.length > 0 ? '' : summaryOf({ body: asked.body, calls, plan: plan ?? null })}
      end={end && <span className="isolate-text inline-block max-w-64 truncate align-bottom">{end}</span>}
    >
      {asked.body !== '' && <Text tone="">{asked.body}</Text>}
      {plan !== undefined && <PlanView plan={plan} />}
      {calls.length > 0 && (
        <Suspense fallback={null}>
          <PermissionCalls calls={calls} excluded={excludedCalls(answered)} />
        </Suspense>
      )}
      {answered !== undefined && <p className="isolate-text mt-2 break-words text-dim">{end}</p>}
    </ExpandableRow>
  );
}

function excludedCalls(answered: QuestionLine['answered']): ReadonlySet<string> {
  return new Set(Object.entries(answered?.items ?? {}).flatMap(([call, yes]) => (yes ? [] : [call])));
}

/** The end of a run: the answer unless it is already shown, the error, and a summary. */
function End({ line, ...row }: RowProps & { line: EndLine }) {
  const t = useMessages();
  const runs = useRunMessages();
  const sentence = runs?.ended(line.reason, line.code) ?? '';
  const details = runs?.details(line.reason, line.code, line.error) ?? '';
  // what can be done with a run is not for subtasks, which are no runs of the session
  const run = useSessionStore((store) => store.state.runs.find((one) => one.run === line.run));
  const isSubtask = run === undefined;
  const isLimit = runs?.isLimit(line.reason) ?? false;
  // a subtask that outlasts its run adds to what that used
  const { usage, cost } = run ?? line;
  const stop = line.status === 'cancelled' ? (t.stops[line.reason] ?? line.reason) : '';
  const sentences = [
    line.status === 'completed' && !isLimit ? sentence : '',
    line.fallback === undefined ? '' : (runs?.answeredBy(line.fallback) ?? ''),
  ];
  const isIncomplete = (runs?.exception({ status: line.status, reason: line.reason, notRun: line.notRun ?? 0 }) ?? '') !== '';
  const glyph = isIncomplete ? '⚠' : { completed: '✓', failed: '✕', cancelled: '■' }[line.status as 'completed'] ?? '·';
  const facts = [
    stop,
    line.notRun === undefined ? '' : (runs?.completedWithout(line.notRun) ?? t.status.completed),
    line.duration > 0 ? formatDuration(line.duration) : '',
    usage.in + usage.cached + usage.out === 0
      ? ''
      : `${formatCount(usage.in + usage.cached)} ${t.short.in} ${formatCount(usage.out)} ${t.short.out}`,
    cost === null || cost === 0 ? '' : formatCost(cost),
  ];
  return (
    <>
      {line.answer.trim() !== '' && (
        <StaticRow glyph="●" tone="text-ink" here={false}>
          <MarkdownView text={line.answer} />
        </StaticRow>
      )}
      {(isLimit || line.error !== '') && (
        <StaticRow glyph={isLimit ? '⚠' : '✕'} tone={isLimit ? 'text-warn' : 'text-bad'} here={false}>
          <p className={`break-words ${isLimit ? 'text-warn' : 'text-bad'}`}>{sentence}</p>
          {details !== '' && <p className="isolate-text break-words text-dim">{details}</p>}
        </StaticRow>
      )}
      <Suspense fallback={null}>
        <RunFiles run={line.run} />
      </Suspense>
      {sentences.map((one) => one !== '' && (
        <SentenceRow key={one} here={false}>
          {one}
        </SentenceRow>
      ))}
      <NoteRow glyph={glyph} here={row.here}>
        <span className="min-w-0">{facts.filter((fact) => fact !== '').join(' · ') || t.status[line.status]}</span>
        {!isSubtask && (
          <Suspense fallback={null}>
            <RunActions line={line} />
          </Suspense>
        )}
      </NoteRow>
    </>
  );
}
