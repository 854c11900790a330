import type { LiveNode, RunState, ToolLine } from '../../state/session_state';
import { formatCount, formatDuration } from '../../lib/format';
import { useMessages, type Messages } from '../../i18n/catalog';
import { useRunMessages } from '../../i18n/runs';
import type { RunMessages } from '../../i18n/run_texts';
import { useElapsed } from './elapsed';
import { ExpandableRow, Text, type RowProps } from './row';

const OUTPUT_LINES = 3;
const MAX_LINE_CHARS = 200;
const MAX_HINT_CHARS = 160;

/** What a run is doing: the replies that are streamed, and the calls that are running. */
export interface Activity {
  run: RunState;
  nodes: readonly LiveNode[];
  calls: readonly ToolLine[];
}

/** The last row of an active run: what it does, for how long, and how many tokens it used. */
export function WorkingRow(props: RowProps & { id: string; activity: Activity }) {
  const { activity, ...row } = props;
  const t = useMessages();
  const elapsed = useElapsed(activity.run.started);
  const { usage } = activity.run;
  const tokens = usage.in + usage.cached + usage.out;
  const runs = useRunMessages();
  const { title, hint, text } = describe(activity, t, runs, elapsed);
  const output = lastLines(activity);
  const end = [
    elapsed < 1_000 ? '' : formatDuration(Math.floor(elapsed / 1_000) * 1_000),
    tokens === 0 ? '' : t.tokens(formatCount(tokens)),
  ];
  return (
    <div data-testid="working">
      <ExpandableRow
        {...row}
        glyph="●"
        tone="text-accent pulse"
        title={title}
        hint={hint}
        end={end.filter((one) => one !== '').join(' · ')}
        quiet
      >
        {text === '' ? null : <Text>{text}</Text>}
      </ExpandableRow>
      {output !== '' && (
        <pre aria-label={t.output} className="ml-[1.625rem] overflow-hidden font-mono text-xs break-words whitespace-pre-wrap text-dim">
          {output}
        </pre>
      )}
    </div>
  );
}

function describe(
  { run, nodes, calls }: Activity,
  t: Messages,
  runs: RunMessages | null,
  elapsed: number,
): { title: string; hint: string; text: string } {
  const retry = nodes.find((node) => node.retry !== undefined)?.retry;
  if (retry !== undefined) {
    const passed = Math.floor((Date.parse(run.started) + elapsed - Date.parse(retry.time)) / 1_000);
    return { title: runs?.retry({ ...retry, seconds: Math.max(0, retry.seconds - passed) }) ?? t.thinking, hint: '', text: '' };
  }
  if (run.status === 'waiting') return { title: t.awaitsTasks, hint: '', text: '' };
  // each call has a row of its own
  if (calls.length > 0) return { title: t.working, hint: '', text: '' };
  if (run.status === 'queued') return { title: t.status.queued, hint: '', text: '' };
  if (nodes.some((node) => !node.reasoning && node.text !== '')) return { title: t.writing, hint: '', text: '' };
  const thought = nodes.find((node) => node.reasoning)?.text ?? '';
  return { title: t.thinking, hint: thought.trimEnd().split('\n').at(-1)?.slice(-MAX_HINT_CHARS) ?? '', text: thought };
}

/** Return the last lines of output of the call that wrote last. */
function lastLines({ nodes, calls }: Activity): string {
  const outputs = calls.flatMap((call) => nodes.find((node) => node.node === call.call)?.text ?? []);
  const lines = (outputs.at(-1) ?? '').trimEnd().split('\n').slice(-OUTPUT_LINES);
  return lines.map((line) => line.slice(-MAX_LINE_CHARS)).join('\n').trim();
}
