import { Link } from 'wouter';
import { settingsApi } from '../../api/settings';
import type { UsageSum } from '../../api/types.gen';
import { useMessages } from '../../i18n/catalog';
import { useSettingsMessages } from '../../i18n/settings';
import { formatCost, formatCount } from '../../lib/format';
import { useSessions } from '../../state/sessions';
import { Loaded } from './loaded';
import { Table } from './table';

const DAYS = 30;
const TOP = 20;
const HEIGHT = 120;
const BAR = 18;

/** Tokens and cost by day, with a chart, by session and by model. */
export function Usage() {
  const s = useSettingsMessages();
  return (
    <>
      <p className="mb-3 text-dim">{s.usageLead}</p>
      <Loaded name="usage" load={() => settingsApi.usage('day', DAYS)}>
        {({ usage }) => (usage.length === 0 ? <p>{s.noUsage}</p> : <Charts days={usage} />)}
      </Loaded>
    </>
  );
}

function Charts({ days }: { days: readonly UsageSum[] }) {
  const s = useSettingsMessages();
  return (
    <>
      <BarChart days={days} />
      <UsageTable label={s.byDay} first={s.day} sums={days} />
      <h3 className="mb-1.5 font-medium">{s.byModel}</h3>
      <Loaded name="usage-model" load={() => settingsApi.usage('model', TOP)}>
        {({ usage }) => <UsageTable label={s.byModel} first={s.model} sums={usage} />}
      </Loaded>
      <h3 className="mb-1.5 font-medium">{s.bySession}</h3>
      <Loaded name="usage-session" load={() => settingsApi.usage('session', TOP)}>
        {({ usage }) => <UsageTable label={s.bySession} first={s.session} sums={usage} isSession />}
      </Loaded>
    </>
  );
}

function UsageTable(props: { label: string; first: string; sums: readonly UsageSum[]; isSession?: boolean }) {
  const s = useSettingsMessages();
  return (
    <Table
      label={props.label}
      head={[props.first, s.input, s.cached, s.output, s.cost]}
      rows={props.sums.map((sum) => ({
        key: sum.key,
        cells: [props.isSession ? <SessionLink key="link" id={sum.key} /> : sum.key, ...numbers(sum, s.unknownCost)],
      }))}
    />
  );
}

function SessionLink({ id }: { id: string }) {
  const t = useMessages();
  const { data } = useSessions();
  const title = data?.sessions.find((one) => one.session_id === id)?.title;
  return (
    <Link href={`/sessions/${id}`} className="isolate-text text-accent hover:underline">
      {title || t.untitled}
    </Link>
  );
}

/** A bar for each day, oldest first: its cost, or its tokens if no cost is known. */
function BarChart({ days }: { days: readonly UsageSum[] }) {
  const s = useSettingsMessages();
  const hasCost = days.some((day) => (day.cost ?? 0) > 0);
  const bars = days.toReversed().map((day) => ({
    key: day.key,
    value: hasCost ? (day.cost ?? 0) : tokensOf(day),
    text: hasCost ? formatCost(day.cost ?? 0) : formatCount(tokensOf(day)),
  }));
  const most = Math.max(...bars.map((bar) => bar.value), Number.MIN_VALUE);
  const label = hasCost ? s.byDay : s.tokensByDay;
  const highest = bars.find((bar) => bar.value === most);
  return (
    <figure className="mb-4">
      <figcaption className="mb-1.5 flex justify-between text-[13px] text-dim">
        <span>{label}</span>
        {highest !== undefined && <span>{`${highest.key}: ${highest.text}`}</span>}
      </figcaption>
      <svg
        role="img"
        aria-label={label}
        viewBox={`0 0 ${bars.length * BAR} ${HEIGHT}`}
        className="h-[120px] max-w-full border-b border-line text-accent"
      >
        {bars.map((bar, at) => {
          const height = Math.max(1, Math.round((bar.value / most) * (HEIGHT - 4)));
          return (
            <rect key={bar.key} x={at * BAR + 2} y={HEIGHT - height} width={BAR - 4} height={height} rx={2} fill="currentColor">
              <title>{`${bar.key}: ${bar.text}`}</title>
            </rect>
          );
        })}
      </svg>
    </figure>
  );
}

function numbers({ usage, cost }: UsageSum, unknown: string): string[] {
  const { input_tokens = 0, output_tokens = 0, cache_read_tokens = 0, cache_write_tokens = 0 } = usage;
  const counts = [input_tokens + cache_write_tokens, cache_read_tokens, output_tokens];
  return [...counts.map(formatCount), cost === null ? unknown : formatCost(cost)];
}

function tokensOf({ usage }: UsageSum): number {
  return Object.values(usage).reduce((sum, count) => sum + count, 0);
}
