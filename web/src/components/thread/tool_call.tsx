import { useEffect, useState } from 'react';
import type { LiveNode, ToolLine } from '../../state/session_state';
import { formatDuration } from '../../lib/format';
import { useMessages } from '../../i18n/catalog';
import { FileLink } from './file_link';
import { ExpandableRow, TextBlock, type RowProps } from './row';

const TOOL_LOOK = {
  running: { glyph: '◆', tone: 'text-accent pulse' },
  done: { glyph: '✓', tone: 'text-ok' },
  failed: { glyph: '✕', tone: 'text-bad' },
};

/** Return the first text argument of a call on one line. */
function gist(given: Record<string, unknown>): string {
  const values = Object.values(given).filter((value) => typeof value === 'string' && value !== '');
  const [first] = values as string[];
  const text = first ?? (Object.keys(given).length > 0 ? JSON.stringify(given) : '');
  return text.replace(/\s+/g, ' ').slice(0, 300);
}

export function Tool({ line, live, ...row }: RowProps & { line: ToolLine; live: LiveNode | undefined }) {
  const t = useMessages();
  const { glyph, tone } = TOOL_LOOK[line.status];
  const running = line.status === 'running';
  const end = running ? <Elapsed since={line.time} /> : formatDuration(line.duration);
  const output = running ? (live?.text ?? '') : '';
  const failed = line.error !== '' ? line.error.split('\n')[0] : '';
  const hint = (
    <>
      {gist(line.arguments)}
      {failed !== '' && <span className="text-bad"> · {failed}</span>}
      {output !== '' && <span> · {output.trimEnd().split('\n').at(-1)?.slice(-120)}</span>}
    </>
  );
  return (
    <ExpandableRow {...row} id={line.key} glyph={glyph} tone={tone} title={<ToolName name={line.name} />} hint={hint} end={end}>
      <TextBlock label={t.arguments} text={argumentText(line.arguments)} />
      {running && <TextBlock label={t.output} text={output} />}
      {line.error !== '' && <TextBlock label={t.error} text={line.error} tone="text-bad" />}
      {line.status === 'done' && <TextBlock label={t.result} text={line.result} />}
      {line.attachments.length > 0 && (
        <div className="flex flex-wrap gap-2">
          {line.attachments.map((file) => (
            <FileLink key={file.sha256 + file.name} file={file} />
          ))}
        </div>
      )}
    </ExpandableRow>
  );
}

function ToolName({ name }: { name: string }) {
  return <span className="font-mono text-[13px]">{name}</span>;
}

/** Return the arguments as lines of text; values other than text as JSON. */
function argumentText(given: Record<string, unknown>): string {
  return Object.entries(given)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');
}

function Elapsed({ since }: { since: string }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const passed = Math.max(0, now - Date.parse(since));
  return passed < 1_000 ? null : `${Math.round(passed / 1_000)}s`;
}
