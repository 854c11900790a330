/** The state of a session: its lines, runs, files and questions, and what is being streamed. */
import type { SessionQuestion } from './questions';
import type {
  Attachment,
  Complexity,
  Envelope,
  ManifestEntry,
  Payloads,
  PlanStep,
  QuestionAnswered,
  QuestionAsked,
  Status,
  StopReason,
} from '../stream/events';

/** An event with its ID; ephemeral events have none. */
export interface Row {
  id?: string | undefined;
  event: Envelope;
}

/** Token usage. `in` does not include cached tokens. */
export interface Tokens {
  in: number;
  cached: number;
  out: number;
}

export interface Step {
  id: string;
  description: string;
  status: NonNullable<PlanStep['status']>;
  /** How the agent knows that the step is done; "" if it did not say. */
  criteria: string;
  byLarkspur: boolean;
}

interface Placed {
  /** Unique in the session: run and node. */
  key: string;
  run: string;
  time: string;
}

export interface InputLine extends Placed {
  kind: 'input';
  text: string;
  channel: string;
  sender: string;
  steer: boolean;
  /** The person let an ended task go on, and wrote nothing. */
  resumed: boolean;
  attachments: readonly Attachment[];
}

/** A command that a person ran in the terminal and that went along with the next message. */
export interface OwnCommandLine extends Placed {
  kind: 'own-command';
  command: string;
  output: string;
  code: number;
}

export interface SayLine extends Placed {
  kind: 'say';
  text: string;
  model: string;
  /** Number of tool calls in the reply; without any, the text is the answer. */
  calls: number;
}

/** What a request to the model was sent without. */
export interface LeftOutLine extends Placed {
  kind: 'left-out';
  parts: Payloads['workflow.node.left_out'];
}

/** The reasoning before a reply, which took so many milliseconds. */
export interface ThoughtLine extends Placed {
  kind: 'thought';
  text: string;
  duration: number;
}

export interface ToolLine extends Placed {
  kind: 'tool';
  call: string;
  name: string;
  /** What people read in place of the name of a tool of an MCP server; "" for none. */
  title: string;
  arguments: Record<string, unknown>;
  status: 'running' | 'done' | 'failed' | 'denied';
  result: string;
  error: string;
  duration: number;
  attachments: readonly Attachment[];
  /** How a command failed that could be run: its exit code, or its time limit. */
  exit?: number;
  timedOut?: boolean;
  /** The change that it made, as a unified diff; "" for none. */
  diff: string;
  /** A call that may not be made: the call as it was asked for; "" for others. */
  denied: string;
  /** The file, command or host of a call that may not be made; "" if it has none. */
  subject: string;
  /** Why a person's answer did not allow it, and what they said. */
  refusal?: { why: string; words: string };
  /** Files that it changed and that agents and programs trust. */
  configuration: readonly string[];
  /** Why questions of its server were declined without asking anybody. */
  declined: readonly string[];
  /** The errors that its server logged meanwhile. */
  logged: readonly string[];
  /** What stopped it, and who; the error is then what it printed. */
  stopped?: { cause: string; by: string; principal: string };
}

/** A call that was returned to the model without being run. */
export interface NotRunLine extends Placed {
  kind: 'not-run';
  tool: string;
  title: string;
  /** The call for display, and its file, command or host; "" if it has none. */
  what: string;
  subject: string;
  reason: string;
}

export interface PlanLine extends Placed {
  kind: 'plan';
  version: number;
  goal: string;
  complexity: Complexity;
  byLarkspur: boolean;
  steps: readonly Step[];
}

export interface QuestionLine extends Placed {
  kind: 'question';
  asked: QuestionAsked;
  answered?: QuestionAnswered;
}

export interface EndLine extends Placed {
  kind: 'end';
  status: Status;
  reason: string;
  answer: string;
  error: string;
  /** What kind of error of the model it is; "" for others. */
  code: string;
  duration: number;
  usage: Tokens;
  cost: number | null;
  /** How many of its last calls were not run. */
  notRun?: number;
  /** The model that wrote the answer, and the one that could not, if a fallback wrote it. */
  fallback?: { model: string; first: string };
}

/** A subtask: a lane beside the others of its call, which expands to its own thread. */
export interface SubtaskLine extends Placed {
  kind: 'subtask';
  task: string;
  number: number;
  role: string;
  preview: string;
  /** Tasks that must be completed before it starts. */
  dependsOn: readonly string[];
  status: Status;
  reason: StopReason | null;
  /** What it does now. */
  activity: string;
  started: string;
  duration: number;
  cost: number | null;
  error: string;
  /** How many of its last calls were not run. */
  notRun: number;
  /** Its own run: the artifacts and questions of the session name it. */
  ownRun: string;
  thread: Thread;
}

export type Line =
  | InputLine
  | OwnCommandLine
  | SayLine
  | LeftOutLine
  | NotRunLine
  | ThoughtLine
  | ToolLine
  | PlanLine
  | QuestionLine
  | EndLine
  | SubtaskLine;

/** Lines, those of a run together, and the indices of the lines that later events may update. */
export interface Thread {
  lines: readonly Line[];
  open: Readonly<Record<string, number>>;
  /** The lines of the calls of each run's newest reply with several calls, in their order. */
  order: Readonly<Record<string, readonly string[]>>;
}

export const NO_LINES: Thread = { lines: [], open: {}, order: {} };

export interface RunState {
  run: string;
  task: string;
  text: string;
  /** Where the task came from; `tasks` for the report of ended background tasks. */
  channel: string;
  status: Status;
  reason: StopReason | null;
  /** How many of its last calls were not run. */
  notRun: number;
  started: string;
  /** What it and all its subtasks used so far. */
  usage: Tokens;
  /** US dollars, as far as prices are known; null until it ends. */
  cost: number | null;
  /** From its start to its end in milliseconds; 0 until then. */
  duration: number;
  iterations: number;
  /** Nodes whose late deltas are ignored; only while the run is active. */
  ended: readonly string[];
}

/** A node that is being streamed. `hole`: deltas are missing until the next partial. */
export interface LiveNode {
  run: string;
  node: string;
  k: number;
  text: string;
  hole: boolean;
  reasoning: boolean;
  again: boolean;
  /** The wait for the model that this node shows instead of a text. */
  retry?: Payloads['workflow.node.retry'] & { time: string };
}

/** A stored file of the session; `sent` by a person, not the whole output of a call. */
export interface SessionFile extends Attachment {
  sent: boolean;
}

/** A version of a file that a run made. */
export interface ArtifactFile extends ManifestEntry {
  run: string;
  time: string;
}

export interface State {
  cursor: string;
  thread: Thread;
  runs: readonly RunState[];
  files: readonly SessionFile[];
  artifacts: readonly ArtifactFile[];
  /** Number of files that runs made and that are not kept. */
  omitted: number;
  /** Paths of the workspace that runs changed, as far as events name them. */
  changed: readonly string[];
  /** Whether runs changed more files than events name. */
  moreChanged: boolean;
  /** Grows with each event about changed files. */
  changes: number;
  questions: readonly SessionQuestion[];
  live: Readonly<Record<string, LiveNode>>;
}

export const NO_TOKENS: Tokens = { in: 0, cached: 0, out: 0 };

export const EMPTY: State = {
  cursor: '',
  thread: NO_LINES,
  runs: [],
  files: [],
  artifacts: [],
  omitted: 0,
  changed: [],
  moreChanged: false,
  changes: 0,
  questions: [],
  live: {},
};

/** Return true if an event ID is after a cursor; IDs of different logs are not comparable. */
export function isAfterCursor(id: string, cursor: string): boolean {
  if (cursor === '') return true;
  const [epoch, position] = parted(id);
  const [known, reached] = parted(cursor);
  return epoch === known && position > reached;
}

function parted(id: string): [string, number] {
  const cut = id.lastIndexOf('-');
  return [id.slice(0, cut), Number(id.slice(cut + 1))];
}

export function isOver(status: Status): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

export function keyOf(run: string, node: string): string {
  return `${run}/${node}`;
}
