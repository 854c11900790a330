// Written from the program's own types by `make generate`; not edited by hand.

export const VERSION = 1;

export const EVENTS = {
  "workflow.input.received": { durable: true, terminal: false, inner: false },
  "workflow.lifecycle.updated": { durable: true, terminal: false, inner: false },
  "workflow.node.started": { durable: true, terminal: false, inner: false },
  "workflow.node.completed": { durable: true, terminal: false, inner: false },
  "workflow.node.failed": { durable: true, terminal: false, inner: false },
  "workflow.node.output.delta": { durable: false, terminal: false, inner: false },
  "partial": { durable: false, terminal: false, inner: false },
  "workflow.node.output.summary": { durable: true, terminal: false, inner: false },
  "workflow.tool.started": { durable: true, terminal: false, inner: false },
  "workflow.tool.progress": { durable: false, terminal: false, inner: false },
  "workflow.tool.completed": { durable: true, terminal: false, inner: false },
  "workflow.plan.updated": { durable: true, terminal: false, inner: false },
  "workflow.question.asked": { durable: true, terminal: false, inner: false },
  "workflow.question.answered": { durable: true, terminal: false, inner: false },
  "workflow.result.final": { durable: true, terminal: true, inner: false },
  "workflow.result.cancelled": { durable: true, terminal: true, inner: false },
  "workflow.diagnostic.error": { durable: true, terminal: false, inner: true },
  "workflow.diagnostic.context_compression": { durable: true, terminal: false, inner: true },
  "workflow.diagnostic.context_snapshot": { durable: true, terminal: false, inner: true },
} as const;

export const CONTROLS = ["connected", "replay.done", "stream.reset", "workflow.stream.dropped", "hb", "bye"] as const;

/** One call of an approval question: exactly what would be run. `what` is the command or the call, `diff` what it would change in a file; what a person cannot see stands escaped in both. `reason` is what else is to be known, "" for nothing. `rules` together would allow the call; () when none may. `whole` is the call as it is, when `what` cannot show all of it. */
export interface ApprovalItem {
  call_id: string;
  tool: string;
  what: string;
  risk: string;
  reason: string;
  call_hash: string;
  rules?: Array<string>;
  diff?: string;
  whole?: Attachment | null;
}

/** A stored file: content-addressed, `size` in bytes. */
export interface Attachment {
  name: string;
  media_type: string;
  uri: string;
  sha256: string;
  size: number;
}

/** The server closes the stream; come back after `retry` milliseconds. */
export interface Bye {
  retry: number;
}

/** The first frame of a stream. `head` and `earliest` are wire ids. */
export interface Connected {
  session_id?: string;
  sessions?: Array<string>;
  head: string;
  earliest: string;
  active_run_id: string | null;
  server_version: string;
}

/** Older exchanges were left out of what the model is sent. Tokens are estimates. */
export interface ContextCompression {
  messages_before: number;
  messages_after: number;
  tokens_before: number;
  tokens_after: number;
  budget_tokens: number;
  reason: "provider_refused" | "window";
}

/** What a run began with: counts and a hash, never the messages themselves. */
export interface ContextSnapshot {
  messages: number;
  tools: number;
  estimated_tokens: number;
  sha256: string;
}

/** Something went wrong, or a gate corrected the model, and the run went on. */
export interface DiagnosticError {
  phase: string;
  error: string;
  recoverable?: boolean;
  call_id?: string;
}

/** Sent every 15 s. `t` is RFC 3339, `head` the newest wire id. */
export interface Heartbeat {
  t: string;
  head: string;
}

/** A person's words reached the session: a new task, or steering for the run at work. */
export interface InputReceived {
  task: string;
  channel: string;
  sender: string;
  attachments?: Array<Attachment>;
  steer?: boolean;
}

/** The run's status changed. */
export interface LifecycleUpdated {
  status: "cancelled" | "completed" | "failed" | "queued" | "running" | "waiting";
  phase: string;
  stop_reason?: "await_user_input" | "budget_exceeded" | "error" | "final_answer" | "interrupted" | "max_iterations" | "rejected" | "timeout" | "user_stop";
}

/** A stage, an iteration or a step is done. */
export interface NodeCompleted {
  node_id: string;
  kind?: "artifact" | "diagnostic" | "generation" | "iteration" | "plan" | "question" | "result" | "step" | "subflow" | "tool";
  duration_ms: number;
  tokens_used?: number;
  tools_run?: number;
}

/** A stage, an iteration or a reply failed. `recoverable`: the run goes on or can resume. */
export interface NodeFailed {
  node_id: string;
  kind?: "artifact" | "diagnostic" | "generation" | "iteration" | "plan" | "question" | "result" | "step" | "subflow" | "tool";
  phase: string;
  error: string;
  recoverable: boolean;
}

/** A stage, an iteration or a plan's step began. A second one of an id starts it over. */
export interface NodeStarted {
  node_id: string;
  kind?: "artifact" | "diagnostic" | "generation" | "iteration" | "plan" | "question" | "result" | "step" | "subflow" | "tool";
  step_index?: number;
  step_description?: string;
  iteration?: number;
}

/** The next words of a reply. `k` counts the pieces of the node, `n` are joined in this one. */
export interface OutputDelta {
  node_id: string;
  k: number;
  n: number;
  text: string;
  reasoning?: boolean;
}

/** A reply is complete; `content` is its visible text. */
export interface OutputSummary {
  node_id: string;
  iteration: number;
  content: string;
  tool_call_count: number;
  llm_duration_ms: number;
  llm_request_id: string;
  llm_model: string;
  usage: Usage;
}

/** All words of an open node so far: sets text and `k`, up or down. `k: 0, text: ""` says that the model's connection broke and the reply starts over. */
export interface Partial {
  node_id: string;
  k: number;
  text: string;
}

/** What the model intends. A `plan` call makes the next version; `update_plan` moves steps. */
export interface Plan {
  version: number;
  goal: string;
  complexity: "complex" | "simple";
  steps: Array<PlanStep>;
  title?: string;
}

/** One step. `id` is short and stable over versions, such as `1` or `collect`. */
export interface PlanStep {
  id: string;
  description: string;
  status?: "completed" | "failed" | "in_progress" | "pending" | "skipped";
}

/** A new version of the plan, or a step of it moved. */
export interface PlanUpdated {
  version: number;
  goal: string;
  complexity: "complex" | "simple";
  steps: Array<PlanStep>;
  title?: string;
}

/** The single accepted answer to a question. `answered_name` is what people call them. */
export interface QuestionAnswered {
  question_id: string;
  decision: "approve" | "edit" | "expired" | "reject" | "text";
  answered_by: string;
  answered_via: string;
  answered_name?: string;
  text?: string;
  items?: Record<string, boolean>;
  grant?: "once" | "rule" | "session";
  rules?: Array<string>;
}

/** The run pauses until a person answers. `who` may answer: operators, or the asker as well. */
export interface QuestionAsked {
  question_id: string;
  kind: "approval" | "clarify" | "plan";
  title: string;
  body: string;
  options: Array<string>;
  expires_at: string;
  calls?: Array<ApprovalItem>;
  multiple?: boolean;
  plan?: Plan;
  who?: "asker" | "operators";
}

/** What follows is live. */
export interface ReplayDone {
  head: string;
}

/** The run's end by a person's will. */
export interface ResultCancelled {
  reason: string;
  requested_by: string;
  requested_via: string;
}

/** The run's end, completed or failed. `cost` in US dollars, absent without a known price. `error_code` names a failure of the model: model_key_refused, model_busy, model_unreachable, model_rejected, context_too_long. */
export interface ResultFinal {
  final_answer: string;
  stop_reason: "await_user_input" | "budget_exceeded" | "error" | "final_answer" | "interrupted" | "max_iterations" | "rejected" | "timeout" | "user_stop";
  total_iterations: number;
  usage: Usage;
  duration_ms: number;
  cost?: number;
  error?: string;
  error_code?: string;
  attachments?: Array<Attachment>;
}

/** The watcher was too slow: ephemerals after `since` were left out; fresh partials follow. */
export interface StreamDropped {
  since: string;
  nodes: Array<string>;
}

/** The watcher's cursor means nothing here: drop the state and read again from `earliest`. */
export interface StreamReset {
  reason: string;
  earliest: string;
  head: string;
}

/** A tool returned, or was never run. A failed call carries `error` and no `result`. */
export interface ToolCompleted {
  call_id: string;
  tool_name: string;
  duration_ms: number;
  result?: string;
  error?: string;
  attachments?: Array<Attachment>;
  metadata?: Record<string, unknown>;
}

/** The next output of a running tool, counted as in a delta; `node_id` is the call's id. */
export interface ToolProgress {
  node_id: string;
  k: number;
  n: number;
  text: string;
}

/** A tool call is about to run: stored before its first effect. Arguments that are too long are clipped, and attached whole. */
export interface ToolStarted {
  call_id: string;
  tool_name: string;
  arguments: Record<string, unknown>;
  iteration: number;
  risk: string;
  attachments?: Array<Attachment>;
}

/** Tokens of one or many model calls. Cached tokens are not part of `input_tokens`. */
export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
}

/** What every envelope has besides its `event` and its `payload`. */
export interface Head {
  version: number;
  event_id?: string;
  seq?: number;
  timestamp: string;
  session_id: string;
  task_id: string;
  run_id: string;
  parent_run_id?: string;
  agent_level: "core" | "subagent";
  correlation_id: string;
  causation_id?: string;
  log_id: string;
  node_id?: string;
  node_kind?: "artifact" | "diagnostic" | "generation" | "iteration" | "plan" | "question" | "result" | "step" | "subflow" | "tool";
  is_subtask: boolean;
}

export interface Payloads {
  "workflow.input.received": InputReceived;
  "workflow.lifecycle.updated": LifecycleUpdated;
  "workflow.node.started": NodeStarted;
  "workflow.node.completed": NodeCompleted;
  "workflow.node.failed": NodeFailed;
  "workflow.node.output.delta": OutputDelta;
  "partial": Partial;
  "workflow.node.output.summary": OutputSummary;
  "workflow.tool.started": ToolStarted;
  "workflow.tool.progress": ToolProgress;
  "workflow.tool.completed": ToolCompleted;
  "workflow.plan.updated": PlanUpdated;
  "workflow.question.asked": QuestionAsked;
  "workflow.question.answered": QuestionAnswered;
  "workflow.result.final": ResultFinal;
  "workflow.result.cancelled": ResultCancelled;
  "workflow.diagnostic.error": DiagnosticError;
  "workflow.diagnostic.context_compression": ContextCompression;
  "workflow.diagnostic.context_snapshot": ContextSnapshot;
}

export interface ControlFrames {
  "connected": Connected;
  "replay.done": ReplayDone;
  "stream.reset": StreamReset;
  "workflow.stream.dropped": StreamDropped;
  "hb": Heartbeat;
  "bye": Bye;
}

export type EventName = keyof Payloads;

/** An event with its place in the world; `payload` follows from `event`. */
export type Envelope = {
  [Name in EventName]: Head & { event: Name; payload: Payloads[Name] };
}[EventName];
