/**
 * The state of a session is a fold over its envelopes: one pure function for live, reload and
 * replay. `rows` and `runs` come from durable events alone, so two readers that stand at one cursor
 * have the same; `live` is what ephemeral events add until a node has ended.
 */
import { accounted, endsOf, newRun } from './account';
import { asked, type Known } from './asking';
import type { Attachment, Envelope } from './events';
import {
  isAfter,
  isOver,
  keyOf,
  type LiveNode,
  type Row,
  type RunState,
  type State,
} from './state';
import { DraftThread } from './threads';

const MOST_LIVE = 1_000_000;

/** Return the state after one more row. */
export function reduce(state: State, row: Row): State {
  return fold(state, [row]);
}

/** Return the state after these rows, in order. Neither is changed. */
export function fold(state: State, rows: readonly Row[]): State {
  const draft = new Draft(state);
  for (const row of rows) draft.take(row);
  return draft.state();
}

/** Return the state without what ephemeral events added: the same for every reader of a cursor. */
export function settled(state: State): State {
  return { ...state, live: {} };
}

/** Return the state of somebody who was told that ephemerals were left out. */
export function dropped(state: State, nodes: readonly string[]): State {
  const live = Object.entries(state.live).map(([key, node]) => [
    key,
    nodes.includes(node.node) ? { ...node, hole: true } : node,
  ]);
  return { ...state, live: Object.fromEntries(live) as State['live'] };
}

/** Return the run that is at work, or next in turn. */
export function activeRun(state: State): RunState | undefined {
  return (
    state.runs.findLast((run) => run.status === 'running' || run.status === 'waiting') ??
    state.runs.findLast((run) => run.status === 'queued')
  );
}

/** A state that may be changed: its arrays are copied once, its objects replaced. */
class Draft {
  private cursor: string;
  private readonly thread: DraftThread;
  private readonly runs: RunState[];
  private readonly files: Attachment[];
  private questions: readonly Known[];
  private readonly live: Record<string, LiveNode>;

  constructor(state: State) {
    this.cursor = state.cursor;
    this.thread = new DraftThread(state.thread);
    this.runs = [...state.runs];
    this.files = [...state.files];
    this.questions = state.questions;
    this.live = { ...state.live };
  }

  state(): State {
    return {
      cursor: this.cursor,
      thread: this.thread.thread(),
      runs: this.runs,
      files: this.files,
      questions: this.questions,
      live: this.live,
    };
  }

  take(row: Row): void {
    const { event } = row;
    if (row.id === undefined) {
      this.hear(event);
      return;
    }
    if (!isAfter(row.id, this.cursor)) return;
    this.cursor = row.id;
    this.account(event);
    this.collect(event);
    this.questions = asked(this.questions, event);
    if (event.is_subtask) this.thread.lane(event);
    else this.thread.write(event);
  }

  /** Take an ephemeral event in: words of a node that has not ended. */
  private hear(event: Envelope): void {
    switch (event.event) {
      case 'workflow.node.output.delta':
      case 'workflow.tool.progress':
        if (this.isOpen(event.run_id, event.payload.node_id)) this.hearDelta(event);
        return;
      case 'partial': {
        const { node_id: node, k, text } = event.payload;
        if (!this.isOpen(event.run_id, node)) return;
        const key = keyOf(event.run_id, node);
        const reasoning = node.endsWith(':think');
        const again = k === 0 && text === '' && this.live[key] !== undefined;
        this.live[key] = { run: event.run_id, node, k, text, hole: false, reasoning, again };
        return;
      }
      default:
        return;
    }
  }

  private hearDelta(event: Envelope): void {
    if (event.event !== 'workflow.node.output.delta' && event.event !== 'workflow.tool.progress') {
      return;
    }
    const { node_id: node, k, n, text } = event.payload;
    const key = keyOf(event.run_id, node);
    const reasoning = node.endsWith(':think');
    const fresh = { run: event.run_id, node, k: 0, text: '', hole: false, reasoning, again: false };
    const known = this.live[key] ?? fresh;
    if (known.hole || k <= known.k) {
      if (this.live[key] === undefined) this.live[key] = known;
      return;
    }
    this.live[key] =
      k - n === known.k
        ? { ...known, k, text: (known.text + text).slice(-MOST_LIVE) }
        : { ...known, hole: true };
  }

  private isOpen(id: string, node: string): boolean {
    const run = this.runs.findLast((one) => one.run === id);
    return run === undefined || !(isOver(run.status) || run.ended.includes(node));
  }

  /** Keep the run's own account. */
  private account(event: Envelope): void {
    const at = this.runs.findLastIndex((run) => run.run === event.run_id);
    const before = this.runs[at];
    const after = accounted(before ?? newRun(event), event);
    if (before === undefined) {
      if (!event.is_subtask) this.runs.push(after);
    } else if (after !== before) this.runs[at] = after;
    for (const node of endsOf(event)) delete this.live[keyOf(event.run_id, node)];
    if (isOver(after.status)) this.silence(event.run_id);
  }

  private silence(run: string): void {
    for (const key of Object.keys(this.live)) if (this.live[key]?.run === run) delete this.live[key];
  }

  private collect(event: Envelope): void {
    if (
      event.event !== 'workflow.input.received' &&
      event.event !== 'workflow.tool.started' &&
      event.event !== 'workflow.tool.completed' &&
      event.event !== 'workflow.result.final'
    ) {
      return;
    }
    for (const file of event.payload.attachments ?? []) {
      const known = (one: Attachment) => one.sha256 === file.sha256 && one.name === file.name;
      if (!this.files.some(known)) this.files.push(file);
    }
  }
}
