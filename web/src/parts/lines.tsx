import { memo, useRef, useState } from 'react';
import { gistOf, glyphOf, howOf, titleOf, whoOf } from '../asking';
import type {
  EndLine,
  InputLine,
  LaneLine,
  Line,
  LiveNode,
  PlanLine,
  QuestionLine,
  SayLine,
} from '../state';
import { usePreferences } from '../preferences';
import { formatCost, formatCount, formatDuration, formatTime } from '../formats';
import { useWords } from '../words';
import { FileLink } from './file';
import { PermissionBody } from './permission';
import { Prose } from './prose';
import { PlanBody } from './review';
import { Dim, Fold, Plain, Text, useFocus, type RowProps } from './row';
import { doneOf, Steps } from './steps';
import { Tool } from './tool';

/** One event of a run as a line of its own. */
export const LineView = memo(function LineView(
  props: RowProps & { line: Line; live: LiveNode | undefined },
) {
  const { line, live, ...row } = props;
  switch (line.kind) {
    case 'input':
      return <Input line={line} {...row} />;
    case 'say':
      return <Say line={line} {...row} />;
    case 'tool':
      return <Tool line={line} live={live} {...row} />;
    case 'plan':
      return <Plan line={line} {...row} />;
    case 'question':
      return <Question line={line} {...row} />;
    case 'failure':
      return (
        <Fold {...row} id={line.key} glyph="✕" tone="text-bad" title={line.phase} hint={line.error}>
          <Text tone="text-bad">{line.error}</Text>
        </Fold>
      );
    case 'end':
      return <End line={line} {...row} />;
    case 'lane':
      return <Lane line={line} {...row} />;
  }
});

/** Words that are being said, or thought, right now. */
export function LiveView(props: RowProps & { node: LiveNode }) {
  const words = useWords();
  const { node, ...row } = props;
  if (node.reasoning) {
    const last = node.text.trimEnd().split('\n').at(-1) ?? '';
    return (
      <Fold {...row} id={`${node.run}/${node.node}`} glyph="·" tone="text-dim pulse" title={words.thinking} hint={last.slice(-160)} quiet>
        <Text>{node.text}</Text>
      </Fold>
    );
  }
  return (
    <Plain glyph="●" tone="text-accent pulse" here={props.here}>
      {node.again && <p className="mb-1 text-dim">{words.startsOver}</p>}
      <Prose text={node.text} growing />
      {node.hole && <p className="mt-1 text-dim">{words.lost}</p>}
    </Plain>
  );
}

const CLAMPED = 400;

function Input({ line, ...row }: RowProps & { line: InputLine }) {
  const words = useWords();
  const language = usePreferences((one) => one.language);
  const box = useRef<HTMLDivElement>(null);
  useFocus(box, row.here);
  const long = line.text.length > CLAMPED || line.text.split('\n').length > 6;
  return (
    <div className={line.steer ? 'py-1' : 'pt-5 pb-1 first:pt-0'}>
      <div ref={box} tabIndex={-1} className="flex gap-1.5 rounded-lg border border-line bg-side py-2 pr-3 pl-1">
        <span className="glyph pt-px text-dim" aria-hidden="true">
          {line.steer ? '↳' : '>'}
        </span>
        <div className="min-w-0 flex-1">
          <span className="sr-only">{line.steer ? words.steered : words.you}: </span>
          <p dir="auto" className={`break-words whitespace-pre-wrap ${long && !row.open ? 'line-clamp-4' : ''}`}>
            {line.text}
          </p>
          {long && (
            <button type="button" aria-expanded={row.open} className="mt-1 text-[13px] text-accent hover:underline" onClick={() => row.onToggle(line.key)}>
              {row.open ? words.close : words.showAll(formatCount(line.text.length))}
            </button>
          )}
          {line.attachments.length > 0 && (
            <div className="mt-2 flex flex-wrap gap-2">
              {line.attachments.map((file) => (
                <FileLink key={file.sha256 + file.name} file={file} />
              ))}
            </div>
          )}
        </div>
        <span className="flex-none text-right text-xs leading-[21px] text-dim tabular-nums">
          {line.channel !== 'web' && <span className="mr-2">{words.via(words.channels[line.channel as keyof typeof words.channels] ?? line.channel)}</span>}
          {line.steer && <span className="mr-2">{words.steered}</span>}
          <time dateTime={line.time}>{formatTime(line.time, language)}</time>
        </span>
      </div>
    </div>
  );
}

/** An answer stands in full; a remark between two tools is a line until it is opened. */
function Say({ line, ...row }: RowProps & { line: SayLine }) {
  const words = useWords();
  const remark = line.calls > 0 && (line.text.length > 110 || line.text.includes('\n'));
  if (remark && !row.open) {
    return (
      <Fold {...row} id={line.key} glyph="●" tone="text-dim" title={<span className="sr-only">{words.agent}</span>} hint={line.text.replaceAll('\n', ' ')}>
        {null}
      </Fold>
    );
  }
  return (
    <Plain glyph="●" tone={line.calls > 0 ? 'text-dim' : 'text-ink'} here={row.here}>
      <Prose text={line.text} />
    </Plain>
  );
}

function Plan({ line, ...row }: RowProps & { line: PlanLine }) {
  const words = useWords();
  return (
    <Fold {...row} id={line.key} glyph="▣" tone="text-accent" title={words.plan} hint={line.goal} end={line.steps.length > 0 ? doneOf(line.steps) : ''}>
      <Steps steps={line.steps} />
    </Fold>
  );
}

function Question({ line, ...row }: RowProps & { line: QuestionLine }) {
  const words = useWords();
  const { asked, answered } = line;
  const { kind, plan, calls = [] } = asked;
  const end = answered && `${howOf(kind, answered, words)} · ${whoOf(answered)}`;
  return (
    <Fold
      {...row}
      id={line.key}
      glyph={glyphOf(kind)}
      tone={answered ? 'text-dim' : 'text-warn'}
      title={<span className="isolate-text">{titleOf({ kind, title: asked.title, calls }, words)}</span>}
      hint={gistOf({ body: asked.body, calls, plan: plan ?? null })}
      end={end && <span className="isolate-text inline-block max-w-64 truncate align-bottom">{end}</span>}
    >
      {asked.body !== '' && <Text tone="">{asked.body}</Text>}
      {plan !== undefined && <PlanBody plan={plan} />}
      {calls.length > 0 && <PermissionBody calls={calls} left={leftOut(answered)} />}
      {answered !== undefined && <p className="isolate-text mt-2 break-words text-dim">{end}</p>}
    </Fold>
  );
}

function leftOut(answered: QuestionLine['answered']): ReadonlySet<string> {
  return new Set(Object.entries(answered?.items ?? {}).flatMap(([call, yes]) => (yes ? [] : [call])));
}

/** The end of a run: one dim line, above it what was not said before. */
function End({ line, ...row }: RowProps & { line: EndLine }) {
  const words = useWords();
  const reason = words.reasons[line.reason as keyof typeof words.reasons] ?? line.reason;
  const glyph = { completed: '✓', failed: '✕', cancelled: '■' }[line.status as 'completed'] ?? '·';
  const facts = [
    line.reason === 'final_answer' ? '' : reason,
    line.duration > 0 ? formatDuration(line.duration) : '',
    line.usage === null
      ? ''
      : `${formatCount(line.usage.in + line.usage.cached)} ${words.short.in} ${formatCount(line.usage.out)} ${words.short.out}`,
    line.cost === null ? '' : formatCost(line.cost),
  ];
  return (
    <>
      {line.answer.trim() !== '' && (
        <Plain glyph="●" tone="text-ink" here={false}>
          <Prose text={line.answer} />
        </Plain>
      )}
      {line.error !== '' && (
        <Plain glyph="✕" tone="text-bad" here={false}>
          <p className="break-words text-bad">{line.error}</p>
        </Plain>
      )}
      <Dim glyph={glyph} here={row.here}>
        {facts.filter((fact) => fact !== '').join(' · ') || words.status[line.status]}
      </Dim>
    </>
  );
}

function Lane({ line, ...row }: RowProps & { line: LaneLine }) {
  const words = useWords();
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = (key: string) => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };
  const state = line.ended ? (line.failed ? '✕' : '✓') : '●';
  const name = `${String.fromCharCode(65 + (line.index % 26))} ${state}`;
  const tools = line.thread.lines.filter((one) => one.kind === 'tool').length;
  return (
    <Fold {...row} id={line.key} glyph="├" tone="text-dim" title={name} hint={line.preview || words.subtask} end={words.steps(tools)}>
      {line.thread.lines.map((one) => (
        <LineView key={one.key} line={one} live={undefined} open={open.has(one.key)} here={false} onToggle={toggle} />
      ))}
    </Fold>
  );
}
