/**
 * Reduces events to the state of a session: one pure function for live events, reload and replay.
 * `thread` and `runs` depend on durable events only, so that they are the same for all readers of a
 * cursor; `live` is what ephemeral events add until a node has ended.
 */
import { reduceBelow, reduceRun, endedNodes, newRun, RETRY } from './run_reducer';
import { reduceQuestions, type SessionQuestion } from './questions';
import type { Attachment, Envelope } from '../stream/events';
import {
  isAfterCursor,
  isOver,
  keyOf,
  type ArtifactFile,
  type LiveNode,
  type Row,
  type RunState,
  type SessionFile,
  type State,
} from './session_state';
import { ThreadBuilder } from './thread_builder';

const MAX_LIVE_CHARS = 1_000_000;

/** Return the state after one more event. */
export function reduceEvent(state: State, row: Row): State {
  return reduceEvents(state, [row]);
}

/**
 * Return the state after more events, in order. The given state is not changed. An event of a form
 * that this version of the page does not know is left out.
 */
export function reduceEvents(state: State, rows: readonly Row[]): State {
  const builder = new StateBuilder(state);
  for (const row of rows) {
    try {
      builder.apply(row);
    } catch (error) {
      console.error('An event cannot be shown:', row.event.event, row.id, error);
    }
  }
  return builder.state();
}

/** Return the state without ephemeral events: the same for all readers of a cursor. */
export function withoutLive(state: State): State {
  return { ...state, live: {} };
}

/** Return the state after ephemeral events of these nodes were dropped. */
export function markGaps(state: State, nodes: readonly string[]): State {
  const live = Object.entries(state.live).map(([key, node]) => [
    key,
    nodes.includes(node.node) ? { ...node, hole: true } : node,
  ]);
  return { ...state, live: Object.fromEntries(live) as State['live'] };
}

/** Return the active run, or the next queued one. */
export function activeRun(state: State): RunState | undefined {
  return (
    state.runs.findLast((run) => run.status === 'running' || run.status === 'waiting') ??
    state.runs.findLast((run) => run.status === 'queued')
  );
}

function newNode(run: string, node: string): LiveNode {
  const reasoning = node.endsWith(':think');
  return { run, node, k: 0, text: '', hole: false, reasoning, again: false };
}

/** A mutable copy of a state: arrays are copied once, objects are replaced. */
class StateBuilder {
  private cursor: string;
  private readonly thread: ThreadBuilder;
  private readonly runs: RunState[];
  private readonly files: SessionFile[];
  private artifacts: readonly ArtifactFile[];
  private omitted: number;
  private changed: readonly string[];
  private moreChanged: boolean;
  private changes: number;
  private questions: readonly SessionQuestion[];
  private readonly live: Record<string, LiveNode>;

  constructor(state: State) {
    this.cursor = state.cursor;
    this.thread = new ThreadBuilder(state.thread);
    this.runs = [...state.runs];
    this.files = [...state.files];
    this.artifacts = state.artifacts;
    this.omitted = state.omitted;
    this.changed = state.changed;
    this.moreChanged = state.moreChanged;
    this.changes = state.changes;
    this.questions = state.questions;
    this.live = { ...state.live };
  }

  state(): State {
    return {
      cursor: this.cursor,
      thread: this.thread.thread(),
      runs: this.runs,
      files: this.files,
      artifacts: this.artifacts,
      omitted: this.omitted,
      changed: this.changed,
      moreChanged: this.moreChanged,
      changes: this.changes,
      questions: this.questions,
      live: this.live,
    };
  }

  apply(row: Row): void {
    const { event } = row;
    if (row.id === undefined) {
      this.applyEphemeral(event);
      return;
    }
    if (!isAfterCursor(row.id, this.cursor)) return;
    this.cursor = row.id;
    this.applyToRun(event);
    if (event.event === 'workflow.node.retry') {
      const { run_id: run, payload: retry } = event;
      this.live[keyOf(run, RETRY)] = { ...newNode(run, RETRY), retry: { ...retry, time: event.timestamp } };
    }
    this.collectFiles(event);
    this.questions = reduceQuestions(this.questions, event);
    if (event.is_subtask) this.thread.applySubtask(event);
    else this.thread.apply(event);
  }

  /** Apply an ephemeral event to a node that has not ended. */
  private applyEphemeral(event: Envelope): void {
    switch (event.event) {
      case 'workflow.node.output.delta':
      case 'workflow.tool.progress':
        if (this.isNodeOpen(event.run_id, event.payload.node_id)) this.applyDelta(event);
        return;
      case 'partial': {
        const { node_id: node, k, text } = event.payload;
        if (!this.isNodeOpen(event.run_id, node)) return;
        const key = keyOf(event.run_id, node);
        const again = k === 0 && text === '' && this.live[key] !== undefined;
        this.live[key] = { ...newNode(event.run_id, node), k, text, again };
        return;
      }
      default:
        return;
    }
  }

  private applyDelta(
    event: Extract<Envelope, { event: 'workflow.node.output.delta' | 'workflow.tool.progress' }>,
  ): void {
    const { node_id: node, k, n, text } = event.payload;
    const key = keyOf(event.run_id, node);
    delete this.live[keyOf(event.run_id, RETRY)];
    const known = this.live[key] ?? newNode(event.run_id, node);
    if (known.hole || k <= known.k) {
      if (this.live[key] === undefined) this.live[key] = known;
      return;
    }
    this.live[key] =
      k - n === known.k
        ? { ...known, k, text: (known.text + text).slice(-MAX_LIVE_CHARS) }
        : { ...known, hole: true };
  }

  private isNodeOpen(id: string, node: string): boolean {
    const run = this.runs.findLast((one) => one.run === id);
    return run === undefined || !(isOver(run.status) || run.ended.includes(node));
  }

  /** Update the run that an event belongs to. */
  private applyToRun(event: Envelope): void {
    const at = this.runs.findLastIndex((run) => run.run === event.run_id);
    const before = this.runs[at];
    const after = reduceRun(before ?? newRun(event), event);
    if (before === undefined) {
      if (!event.is_subtask) this.runs.push(after);
    } else if (after !== before) this.runs[at] = after;
    if (event.is_subtask) {
      const root = this.runs.findLastIndex((run) => run.run === event.correlation_id);
      const run = this.runs[root];
      if (run !== undefined) this.runs[root] = reduceBelow(run, event);
    }
    for (const node of endedNodes(event)) delete this.live[keyOf(event.run_id, node)];
    if (isOver(after.status)) this.removeLiveNodes(event.run_id);
  }

  private removeLiveNodes(run: string): void {
    for (const key of Object.keys(this.live)) if (this.live[key]?.run === run) delete this.live[key];
  }

  private collectFiles(event: Envelope): void {
    if (event.event === 'workflow.artifact.manifest') {
      const { artifacts, omitted = 0 } = event.payload;
      const made = artifacts.map((one) => ({ ...one, run: event.run_id, time: event.timestamp }));
      this.artifacts = [...this.artifacts, ...made];
      this.omitted += omitted;
    }
    if (event.event === 'workflow.files.changed') {
      this.changed = [...new Set([...this.changed, ...event.payload.files.map((one) => one.path)])];
      this.moreChanged ||= event.payload.total > event.payload.files.length;
      this.changes += 1;
    }
    const sent = event.event === 'workflow.input.received';
    const { attachments = [] } = event.payload as { attachments?: readonly Attachment[] };
    for (const file of attachments) {
      const known = (one: Attachment) => one.sha256 === file.sha256 && one.name === file.name;
      if (!this.files.some(known)) this.files.push({ ...file, sent });
    }
  }
}
