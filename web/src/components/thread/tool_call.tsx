import type { LiveNode, ToolLine } from '../../state/session_state';
import { formatDuration } from '../../lib/format';
import { useRunMessages } from '../../i18n/runs';
import { lazyComponent } from '../../lib/lazy';
import { changedLines } from '../../lib/diff';
import { useElapsed } from './elapsed';
import { ExpandableRow, type RowProps } from './row';

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

export function Tool({ line, live, ...row }: RowProps & { line: ToolLine; live: LiveNode | undefined }) {
  const { glyph, tone } = TOOL_LOOK[line.status];
  const running = line.status === 'running';
  const end = running ? <Elapsed since={line.time} /> : formatDuration(line.duration);
  const output = running ? (live?.text ?? '') : '';
  const runs = useRunMessages();
  const stopped = line.stopped && runs?.callStopped(line.stopped.cause, line.stopped.by, line.stopped.principal);
  const refused = line.refused && runs?.callRefused(line.refused);
  const failed = stopped || refused || (line.error.split('\n')[0] ?? '') || (runs?.callFailure(line) ?? '');
  const { added, removed } = changedLines(line.diff);
  const hint = (
    <>
      {line.configuration.length > 0 && <span className="text-warn">⚠ {line.configuration.join(', ')} · </span>}
      {gist(line.arguments) || line.denied}
      {line.diff !== '' && (
        <span className="tabular-nums">
          {' '}
          <span className="text-ok">+{added}</span> <span className="text-bad">−{removed}</span>
        </span>
      )}
      {failed !== '' && <span className={line.status === 'denied' ? 'text-warn' : 'text-bad'}> · {failed}</span>}
    </>
  );
  return (
    <ExpandableRow {...row} id={line.key} glyph={glyph} tone={tone} title={<ToolName name={line.name} />} hint={hint} end={end}>
      <ToolDetails line={line} output={output} />
    </ExpandableRow>
  );
}

function ToolName({ name }: { name: string }) {
  const [, server, tool] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
  // as in the terminal and in chats
  if (tool !== undefined) return <span className="isolate-text" title={name}>{`${tool.replace(/[_.-]+/g, ' ')} (${server})`}</span>;
  return <span className="font-mono text-[13px]">{name}</span>;
}

function Elapsed({ since }: { since: string }) {
  const passed = useElapsed(since);
  return passed < 1_000 ? null : `${Math.round(passed / 1_000)}s`;
}
