import { useEffect, useState, type ReactNode } from 'react';
import { sumTokens } from '../../state/run_reducer';
import { loadEarlier, useSessionStore } from '../../state/session_store';
import { isOver, type PlanLine, type State } from '../../state/session_state';
import { formatCost, formatCount } from '../../lib/format';
import { useMessages } from '../../i18n/catalog';
import { useFileMessages } from '../../i18n/files';
import { SessionFiles } from '../files/session_files';
import { newestVersions } from '../../state/versions';
import { BackgroundCommands } from './background_commands';
import { StatusIcon } from '../thread/status_icon';
import { PlanSteps, stepProgress } from '../thread/plan_steps';

/** The end of a session is shown before the whole session is read. */
const LOAD_ALL_AFTER_MS = 500;

type Tab = 'overview' | 'files';

/** The plan, usage, tasks and files of the session. */
export function SidePanel() {
  const t = useMessages();
  const f = useFileMessages();
  const state = useSessionStore((store) => store.state);
  const [tab, setTab] = useState<Tab>('overview');
  const earlier = useSessionStore((store) => store.earlier);
  // sums and files are those of the whole session
  useEffect(() => {
    if (earlier === null) return;
    const timer = setTimeout(() => void loadEarlier(true), LOAD_ALL_AFTER_MS);
    return () => clearTimeout(timer);
  }, [earlier]);
  const tabs: Array<[Tab, string, number]> = [
    ['overview', f.overview, 0],
    ['files', f.files, newestVersions(state.artifacts).length + state.files.filter((file) => file.sent).length + state.changed.length],
  ];
  return (
    <div className="flex h-full flex-col">
      <div role="tablist" aria-label={t.panel} className="flex h-12 flex-none items-center gap-1 border-b border-line px-3">
        {tabs.map(([name, text, count]) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={tab === name}
            aria-controls="tab-panel"
            onClick={() => setTab(name)}
            className={`rounded-lg px-2.5 py-1 ${tab === name ? 'bg-hover font-medium' : 'text-dim hover:text-ink'}`}
          >
            {text}
            {count > 0 && <span className="ml-1.5 text-dim">{count}</span>}
          </button>
        ))}
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0} className="min-h-0 flex-1 overflow-y-auto p-4">
        {tab === 'overview' ? <Overview state={state} /> : <SessionFiles state={state} />}
      </div>
    </div>
  );
}

function planOf(state: State): PlanLine | undefined {
  const plan = state.thread.lines.findLast((line) => line.kind === 'plan');
  return plan?.kind === 'plan' ? plan : undefined;
}

function Overview({ state }: { state: State }) {
  const t = useMessages();
  const f = useFileMessages();
  const session = useSessionStore((store) => store.session);
  const plan = planOf(state);
  const ended = state.runs.filter((run) => isOver(run.status)).length;
  const results = state.thread.lines.filter((line) => line.kind === 'tool' && line.status !== 'running').length;
  const usage = sumTokens(state.runs.map((one) => one.usage));
  const costs = state.runs.flatMap((one) => (one.cost === null ? [] : [one.cost]));
  const cost = costs.reduce((sum, one) => sum + one, 0);
  const unpriced = state.runs.some((run) => isOver(run.status)) ? f.costUnknown : '–';
  return (
    <>
      <Section title={t.plan} end={plan && plan.steps.length > 0 ? stepProgress(plan.steps) : ''}>
        {plan === undefined ? (
          <p className="text-dim">{f.noPlan}</p>
        ) : (
          <>
            <p className="mb-1.5 break-words">{plan.goal}</p>
            <PlanSteps plan={plan} isOver={state.runs.some((run) => run.run === plan.run && isOver(run.status))} />
          </>
        )}
      </Section>
      <Section title={f.usage}>
        <dl className="grid grid-cols-[1fr_auto] gap-y-0.5 tabular-nums">
          <Fact name={f.tokensIn} value={formatCount(usage.in)} />
          {usage.cached > 0 && <Fact name={f.tokensCached} value={formatCount(usage.cached)} />}
          <Fact name={f.tokensOut} value={formatCount(usage.out)} />
          <Fact name={f.cost} value={costs.length > 0 ? formatCost(cost) : unpriced} />
        </dl>
      </Section>
      {session !== null && <BackgroundCommands session={session} changes={ended + results} />}
      <Section title={f.tasks}>
        <ul>
          {state.runs.slice(-20).toReversed().map((run) => (
            <li key={run.run} className="flex gap-1 py-0.5">
              <StatusIcon run={run} isLabelled />
              <span className="min-w-0 truncate">{run.channel === 'tasks' ? t.report : run.text || t.untitled}</span>
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

function Section({ title, end = '', children }: { title: string; end?: string; children: ReactNode }) {
  return (
    <section className="mb-6">
      <h2 className="mb-1.5 flex justify-between text-xs text-dim">
        {title}
        <span className="tabular-nums">{end}</span>
      </h2>
      {children}
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt className="text-dim">{name}</dt>
      <dd className="text-right">{value}</dd>
    </>
  );
}
