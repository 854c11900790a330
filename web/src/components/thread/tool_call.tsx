import type { LiveNode, ToolLine } from '../../state/session_state';
import { formatDuration } from '../../lib/format';
import { useRunMessages } from '../../i18n/runs';
import { lazyComponent } from '../../lib/lazy';
import { isMcp, toolLabel } from '../../lib/tool_label';
import { withoutMarks } from '../../lib/marks';
import { changedLines } from '../../lib/diff';
import { useElapsed } from './elapsed';
import { ExpandableRow, SentenceRow, type RowProps } from './row';

const ToolDetails = lazyComponent(() => import('./tool_details').then((module) => module.ToolDetails));

const TOOL_LOOK = {
  running: { glyph: '◆', tone: 'text-accent pulse' },
  done: { glyph: '✓', tone: 'text-ok' },
  failed: { glyph: '✕', tone: 'text-bad' },
  denied: { glyph: '!', tone: 'text-warn' },
};

/** Return the first text argument of a call on one line, or what its tasks are. */
export function gist(given: Record<string, unknown>): string {
  const values = Object.values(given).filter((value) => typeof value === 'string' && value !== '');
  const [first] = values as string[];
  if (first === undefined && Array.isArray(given.tasks)) {
    const tasks = given.tasks.map((one: { instruction?: unknown }) => String(one?.instruction ?? ''));
    return tasks.join(' · ').replace(/\s+/g, ' ').slice(0, 300);
  }
  const text = first ?? (Object.keys(given).length > 0 ? JSON.stringify(given) : '');
  return text.replace(/\s+/g, ' ').slice(0, 300);
}

/** Return what a call that was not made is about: its subject, else its arguments, on one line. */
export function refusedGist({ tool, what, subject }: { tool: string; what: string; subject: string }): string {
  if (subject !== '') return subject;
  const [first, ...rest] = what.split('\n');
  return (first === tool || isMcp(tool) ? rest : [first, ...rest]).join(' ').replace(/\s+/g, ' ').slice(0, 300);
}

export function Tool({ line, live, ...row }: RowProps & { line: ToolLine; live: LiveNode | undefined }) {
  const { glyph, tone } = TOOL_LOOK[line.status];
  const running = line.status === 'running';
  const took = line.status === 'denied' ? '' : formatDuration(line.duration);
  const end = running ? <Elapsed since={line.time} /> : took;
  const output = running ? (live?.text ?? '') : '';
  const runs = useRunMessages();
  const stopped = line.stopped && runs?.callStopped(line.stopped.cause, line.stopped.by, line.stopped.principal);
  const refused = line.refusal && runs?.refusal(line.refusal);
  const failed = stopped || refused || (withoutMarks(line.error).split('\n')[0] ?? '') || (runs?.callFailure(line) ?? '');
  const { added, removed } = changedLines(line.diff);
  const hint = (
    <>
      {line.configuration.length > 0 && <span className="text-warn">⚠ {line.configuration.join(', ')} · </span>}
      {gist(line.arguments) || refusedGist({ tool: line.name, what: line.denied, subject: line.subject })}
      {line.diff !== '' && (
        <span className="tabular-nums">
          {' '}
          <span className="text-ok">+{added}</span> <span className="text-bad">−{removed}</span>
        </span>
      )}
      {failed !== '' && <span className={line.status === 'denied' ? 'text-warn' : 'text-bad'}> · {failed}</span>}
    </>
  );
  const remarks = runs?.callRemarks(line) ?? [];
  return (
    <>
    <ExpandableRow {...row} id={line.key} glyph={glyph} tone={tone} title={<ToolName name={line.name} title={line.title} />} hint={hint} end={end}>
      <ToolDetails line={line} output={output} />
    </ExpandableRow>
    {remarks.map((remark) => (
      <SentenceRow key={remark} here={false}>
        {remark}
      </SentenceRow>
    ))}
    </>
  );
}

export function ToolName({ name, title }: { name: string; title: string }) {
  const label = toolLabel(name, title);
  if (label !== name) return <span className="isolate-text" title={name}>{label}</span>;
  return <span className="font-mono text-[13px]">{name}</span>;
}

function Elapsed({ since }: { since: string }) {
  const passed = useElapsed(since);
  return passed < 1_000 ? null : `${Math.round(passed / 1_000)}s`;
}
