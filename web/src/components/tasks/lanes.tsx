/** The subtasks of a run, side by side. Each lane expands to its own thread. */
import { ChevronRight } from 'lucide-react';
import { useRef, useState } from 'react';
import { api } from '../../api/client';
import { useMessages, type Messages } from '../../i18n/catalog';
import { useRunMessages } from '../../i18n/runs';
import type { RunMessages } from '../../i18n/run_texts';
import { useTaskMessages, type TaskMessages } from '../../i18n/tasks';
import { formatCost, formatDuration } from '../../lib/format';
import { isOver, type ArtifactFile, type SubtaskLine } from '../../state/session_state';
import { useSessionStore } from '../../state/session_store';
import { useAttempt } from '../layout/use_attempt';
import { randomId } from '../../stream/shared_stream';
import { LineView } from '../thread/line_view';
import { useFocus } from '../thread/row';
import { StatusIcon } from '../thread/status_icon';

export function Lanes(props: {
  lanes: readonly SubtaskLine[];
  open: ReadonlySet<string>;
  here: boolean;
  onToggle: (key: string) => void;
}) {
  const texts = useTaskMessages();
  return (
    <ul aria-label={texts.lanes} data-testid="lanes" className="my-2 grid grid-cols-[repeat(auto-fit,minmax(min(100%,220px),1fr))] gap-2">
      {props.lanes.map((lane, index) => (
        <Lane
          key={lane.key}
          lane={lane}
          waitsFor={lane.dependsOn.flatMap((task) => unmet(props.lanes, task))}
          open={props.open.has(lane.key)}
          here={props.here && index === 0}
          onToggle={props.onToggle}
        />
      ))}
    </ul>
  );
}

function Lane(props: { lane: SubtaskLine; waitsFor: readonly number[]; open: boolean; here: boolean; onToggle: (key: string) => void }) {
  const { lane, open } = props;
  const t = useMessages();
  const texts = useTaskMessages();
  const runs = useRunMessages();
  const files = useSessionStore((store) => fileCount(store.state.artifacts, lane.ownRun));
  const button = useRef<HTMLButtonElement>(null);
  useFocus(button, props.here);
  const [failure, , attempt] = useAttempt();
  const path = t.subtask({ number: lane.number, role: lane.role, path: '' });
  const awaitsTasks = lane.status === 'waiting' && lane.reason === 'await_tasks';
  const facts = [lane.cost === null || lane.cost === 0 ? '' : formatCost(lane.cost), files === 0 ? '' : texts.files(files)];
  const stop = () => void attempt(() => api.stop(lane.task));
  return (
    <li className={`flex min-w-0 flex-col rounded-xl border bg-raised ${open ? 'col-span-full' : ''} ${lane.status === 'waiting' && !awaitsTasks ? 'border-warn-line' : 'border-line'}`}>
      <button
        ref={button}
        type="button"
        aria-expanded={open}
        onClick={() => props.onToggle(lane.key)}
        className="block w-full rounded-xl px-3 pt-2 pb-1.5 text-left hover:bg-hover"
      >
        <span className="flex items-center gap-1.5">
          <StatusIcon run={lane} />
          <span className="isolate-text min-w-0 flex-1 truncate font-medium">{path}</span>
          <ChevronRight size={14} aria-hidden="true" className={`flex-none text-dim ${open ? 'rotate-90' : ''}`} />
        </span>
        <span className={`isolate-text mt-0.5 block text-[13px] break-words text-dim ${open ? '' : 'line-clamp-2'}`}>{lane.preview}</span>
      </button>
      <div className="mt-auto flex min-h-8 items-center gap-2 px-3 pb-1.5 text-[13px] text-dim">
        <span className={`isolate-text min-w-0 flex-1 truncate ${toneOf(lane, runs)}`} title={lane.error}>
          {lane.status === 'queued' && props.waitsFor.length > 0 ? texts.waitsFor(props.waitsFor) : describe(lane, t, texts, runs)}
        </span>
        <span className="flex-none tabular-nums">{facts.filter((fact) => fact !== '').join(' · ')}</span>
        {!isOver(lane.status) && (
          <button type="button" aria-label={texts.stopTask(path)} onClick={stop} className="flex-none rounded-md border border-line px-2 py-0.5 text-ink hover:bg-hover">
            {texts.stop}
          </button>
        )}
      </div>
      {failure !== '' && (
        <p role="alert" className="px-3 pb-2 text-[13px] text-bad">
          {failure}
        </p>
      )}
      {open && (
        <div className="border-t border-line px-3 py-2">
          <OwnThread lane={lane} />
          {!isOver(lane.status) && <MessageForm task={lane.task} path={path} />}
        </div>
      )}
    </li>
  );
}

function OwnThread({ lane }: { lane: SubtaskLine }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = (key: string) => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };
  // the lane begins with the instruction
  const lines = lane.thread.lines.filter((line) => line.kind !== 'input' || line.steer);
  return lines.map((line) => (
    <LineView key={line.key} line={line} live={undefined} open={open.has(line.key)} here={false} onToggle={toggle} />
  ));
}

/** A message to the subtask, which steers it. */
function MessageForm({ task, path }: { task: string; path: string }) {
  const texts = useTaskMessages();
  const [text, setText] = useState('');
  const [failure, , attempt] = useAttempt();
  const key = useRef(randomId());
  const send = async () => {
    if (text.trim() === '') return;
    await attempt(async () => {
      await api.steer(task, text, key.current);
      key.current = randomId();
      setText('');
    });
  };
  return (
    <form
      className="mt-2 flex gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <input
        aria-label={texts.message(path)}
        placeholder={texts.hint}
        value={text}
        onChange={(event) => setText(event.target.value)}
        className="h-8 min-w-0 flex-1 rounded-lg border border-line bg-bg px-2"
      />
      <button type="submit" disabled={text.trim() === ''} className="choice flex-none">
        {texts.send}
      </button>
      {failure !== '' && (
        <p role="alert" className="text-bad">
          {failure}
        </p>
      )}
    </form>
  );
}

function describe(lane: SubtaskLine, t: Messages, texts: TaskMessages, runs: RunMessages | null): string {
  const exception = runs?.exception(lane) ?? '';
  if (exception !== '') return exception;
  switch (lane.status) {
    case 'waiting':
      return lane.reason === 'await_tasks' ? texts.waitsForTasks : texts.waitsForYou;
    case 'running':
      return lane.activity || t.thinking;
    case 'completed':
      return texts.doneIn(formatDuration(lane.duration));
    case 'failed':
      return lane.reason === 'blocked' ? texts.blocked : runs?.ended(lane.reason ?? 'error', '') || t.status.failed;
    default:
      return t.status[lane.status];
  }
}

function toneOf(lane: SubtaskLine, runs: RunMessages | null): string {
  if ((runs?.exception(lane) ?? '') !== '') return 'text-warn';
  if (lane.status === 'failed') return 'text-bad';
  return lane.status === 'waiting' && lane.reason !== 'await_tasks' ? 'text-warn' : '';
}

/** The number of a task that is not completed yet. */
function unmet(lanes: readonly SubtaskLine[], task: string): number[] {
  return lanes.filter((lane) => lane.task === task && lane.status !== 'completed').map((lane) => lane.number);
}

/** How many files a run made: those in a shared folder are listed by later runs too. */
function fileCount(artifacts: readonly ArtifactFile[], run: string): number {
  const makers = new Map<string, string>();
  for (const { uri, run: maker } of artifacts) if (!makers.has(uri)) makers.set(uri, maker);
  return new Set(artifacts.filter((one) => makers.get(one.uri) === run).map((one) => one.name)).size;
}
