/** All tasks and subtasks: those that wait for a person, those that run, and ended ones. */
import { Menu } from 'lucide-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { Link } from 'wouter';
import { api } from '../../api/client';
import type { TaskListView } from '../../api/types.gen';
import { useMessages } from '../../i18n/catalog';
import { useTaskMessages } from '../../i18n/tasks';
import { formatCost, formatDuration, formatTime } from '../../lib/format';
import { usePreferences } from '../../state/preferences';
import { subscribe } from '../../state/session_store';
import { StatusIcon, useStatusView } from '../thread/status_icon';

const GROUPS = ['needs_me', 'running', 'done'] as const;
const KEY = ['task-groups'];
const REFRESH_DELAY_MS = 200;

export function TasksPage({ onMenu }: { onMenu: () => void }) {
  const t = useMessages();
  const texts = useTaskMessages();
  const { data } = useQuery({
    queryKey: KEY,
    queryFn: () => Promise.all(GROUPS.map((group) => api.taskGroup(group))),
    refetchInterval: 15_000,
    refetchOnWindowFocus: 'always',
  });
  useRefresh();
  return (
    <>
      <header className="flex h-12 flex-none items-center gap-2 border-b border-line px-3">
        <button type="button" className="bar-button min-[720px]:hidden" aria-label={t.menu} onClick={onMenu}>
          <Menu size={18} aria-hidden="true" />
        </button>
        <h1 className="font-semibold">{t.tasks}</h1>
      </header>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto max-w-[808px] px-6 py-4 max-[719px]:px-4">
          {data !== undefined &&
            GROUPS.map((group, index) => (
              <section key={group} aria-labelledby={`tasks-${group}`} className="mb-6">
                <h2 id={`tasks-${group}`} className="mb-1 flex items-center gap-2 font-semibold">
                  {texts.groups[group]}
                  <span className="font-normal text-dim tabular-nums">{data[index]?.tasks.length || ''}</span>
                </h2>
                {data[index]?.tasks.length === 0 && <p className="text-dim">{texts.noneOf[group]}</p>}
                <ul>
                  {data[index]?.tasks.map((task) => (
                    <Row key={task.task_id} task={task} />
                  ))}
                </ul>
              </section>
            ))}
        </div>
      </div>
    </>
  );
}

function Row({ task }: { task: TaskListView }) {
  const t = useMessages();
  const texts = useTaskMessages();
  const language = usePreferences((preferences) => preferences.language);
  const run = { status: task.status, reason: task.stop_reason, notRun: task.calls_not_run };
  const statusView = useStatusView();
  const state = task.stop_reason === 'blocked' ? texts.blocked : statusView(run).text;
  const place = task.path === '' ? '' : `${t.subtask(task)} ${texts.of(task.parent)}`;
  const facts = [
    state,
    task.files === 0 ? '' : texts.files(task.files),
    task.cost ? formatCost(task.cost) : '',
    durationOf(task),
  ];
  return (
    <li>
      <Link
        href={`/sessions/${task.session_id}#${task.task_id}`}
        className="-mx-2 flex items-start gap-1.5 rounded-lg px-2 py-1.5 hover:bg-hover"
      >
        <StatusIcon run={run} />
        <span className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-3">
          <span className="min-w-0 flex-1 basis-60">
            <span className="isolate-text block truncate">{task.reports.length > 0 ? t.report : task.task}</span>
            {place !== '' && <span className="isolate-text block truncate text-[13px] text-dim">{place}</span>}
          </span>
          <span className="text-[13px] text-dim tabular-nums">{facts.filter((fact) => fact !== '').join(' · ')}</span>
        </span>
        <time dateTime={task.created} className="ml-1.5 flex-none text-[13px] leading-[21px] text-dim tabular-nums">
          {formatTime(task.created, language)}
        </time>
      </Link>
    </li>
  );
}

function durationOf(task: TaskListView): string {
  if (!task.started_at || !task.completed_at) return '';
  return formatDuration(Date.parse(task.completed_at) - Date.parse(task.started_at));
}

/** Read the groups again when a task starts, waits or ends. */
function useRefresh(): void {
  const queries = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const stop = subscribe((event) => {
      const changes = event.event === 'workflow.lifecycle.updated' || event.event === 'background.task.dispatched';
      if (!changes && !event.event.startsWith('workflow.result.')) return;
      clearTimeout(timer);
      timer = setTimeout(() => void queries.invalidateQueries({ queryKey: KEY }), REFRESH_DELAY_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [queries]);
}
