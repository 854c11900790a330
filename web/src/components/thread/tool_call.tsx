import type { LiveNode, ToolLine } from '../../state/session_state';
import { formatDuration } from '../../lib/format';
import { lazyComponent } from '../../lib/lazy';
import { useElapsed } from './elapsed';
import { ExpandableRow, type RowProps } from './row';

const ToolDetails = lazyComponent(() => import('./tool_details').then((module) => module.ToolDetails));

const TOOL_LOOK = {
  running: { glyph: '◆', tone: 'text-accent pulse' },
  done: { glyph: '✓', tone: 'text-ok' },
  failed: { glyph: '✕', tone: 'text-bad' },
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
  const failed = line.error !== '' ? line.error.split('\n')[0] : '';
  const hint = (
    <>
      {line.configuration.length > 0 && <span className="text-warn">⚠ {line.configuration.join(', ')} · </span>}
      {gist(line.arguments)}
      {failed !== '' && <span className="text-bad"> · {failed}</span>}
    </>
  );
  return (
    <ExpandableRow {...row} id={line.key} glyph={glyph} tone={tone} title={<ToolName name={line.name} />} hint={hint} end={end}>
      <ToolDetails line={line} output={output} />
    </ExpandableRow>
  );
}

function ToolName({ name }: { name: string }) {
  return <span className="font-mono text-[13px]">{name}</span>;
}

function Elapsed({ since }: { since: string }) {
  const passed = useElapsed(since);
  return passed < 1_000 ? null : `${Math.round(passed / 1_000)}s`;
}
