// Written from the program's own types by `make generate`; not edited by hand.

export const VERSION = 1;

export const EVENTS = ["workflow.input.received", "workflow.input.waiting", "workflow.input.edited", "workflow.input.files_fetched", "workflow.people.mentioned", "workflow.lifecycle.updated", "workflow.node.started", "workflow.node.completed", "workflow.node.failed", "workflow.node.retry", "workflow.node.left_out", "workflow.node.output.delta", "partial", "workflow.node.output.summary", "workflow.tool.started", "workflow.tool.progress", "workflow.tool.completed", "workflow.artifact.manifest", "workflow.files.changed", "background.task.dispatched", "background.task.completed", "workflow.subflow.progress", "workflow.subflow.completed", "workflow.plan.updated", "workflow.question.asked", "workflow.question.answered", "workflow.result.final", "workflow.result.cancelled", "workflow.session.titled", "workflow.feedback.given", "workflow.notice", "workflow.diagnostic.error", "workflow.diagnostic.tool_filtering", "workflow.diagnostic.context_compression", "workflow.diagnostic.context_snapshot"] as const;

export const CONTROLS = ["connected", "replay.done", "stream.reset", "workflow.stream.dropped", "hb", "bye"] as const;

/** One call of an approval question: exactly what would run. `what` is the command or the call, `diff` the change to a file; invisible characters are escaped in both. `reason` is an additional reason, "" for none. `rules` together would allow the call, () if no rule may. `whole` is the full call if `what` is truncated. `action` and `subject` say in short what it does, such as to change `report.md`, for the title of the question. `reason_code` says the reason to channels in other languages, with `reason_about` as its variable part. `title` is what people read in place of the name of a tool of an MCP server. */
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
  action?: "change" | "create" | "fetch" | "read" | "run" | "trust" | "use";
  subject?: string;
  reason_code?: "" | "deny_rule" | "network" | "no_rule" | "owner" | "unchecked";
  reason_about?: string;
  title?: string;
}

/** Files that a call made for people: new ones, or new versions. `source_tool` made them. `omitted` counts further new files of the call, which are not kept. The files of one call may come in several events; those found at the end of a run have the call id "". */
export interface ArtifactManifest {
  artifacts: Array<ManifestEntry>;
  call_id: string;
  source_tool: string;
  omitted?: number;
}

/** A stored file: content-addressed, `size` in bytes. Without `sha256` and `size` it is a file that a chat service still has, at `uri`. */
export interface Attachment {
  name: string;
  media_type: string;
  uri: string;
  sha256: string;
  size: number;
}

/** The server closes the stream; reconnect after `retry` milliseconds. */
export interface Bye {
  event: "bye";
  retry: number;
}

/** A file of the workspace that a run changed. `added` and `removed` are lines, if known. */
export interface ChangedFile {
  path: string;
  kind: "changed" | "created" | "deleted";
  added?: number;
  removed?: number;
}

/** The first frame of a stream. `head` and `earliest` are wire ids. */
export interface Connected {
  event: "connected";
  session_id?: string;
  sessions?: Array<string>;
  head: string;
  earliest: string;
  active_run_id: string | null;
  server_version: string;
}

/** Older exchanges were left out of the request. Tokens are estimates. */
export interface ContextCompression {
  messages_before: number;
  messages_after: number;
  tokens_before: number;
  tokens_after: number;
  budget_tokens: number;
  reason: "provider_refused" | "window";
}

/** A part of a request to the model, in estimated tokens. `rules` are those of Larkspur and the profile. `owner`, `chat`, `folder` and `caller` are instructions, `name` is their file. `skills` describes those that can be loaded. */
export interface ContextPart {
  kind: "caller" | "chat" | "conversation" | "folder" | "loaded_skills" | "owner" | "rules" | "skills" | "tools";
  tokens: number;
  name?: string;
}

/** The size and hash of the initial context, without the messages. */
export interface ContextSnapshot {
  messages: number;
  tools: number;
  estimated_tokens: number;
  sha256: string;
}

/** What a request to the model holds. `window` is the context window, of which `reserved` tokens are kept for the reply. */
export interface ContextUse {
  window: number;
  reserved: number;
  parts: Array<ContextPart>;
}

/** An error or a correction by a gate; the run continues. */
export interface DiagnosticError {
  phase: string;
  error: string;
  recoverable?: boolean;
  call_id?: string;
}

/** A person rated the answer of the run, or took that back. It comes after the end of the run. `rating` is `up`, `down` or null, `by` the principal. Without rating and comment there is no feedback any more. `GET /api/tasks/{task_id}` returns the stored feedback. */
export interface FeedbackGiven {
  rating: "down" | "up" | null;
  comment: string;
  by: string;
}

/** Files of the workspace that the run made, changed or deleted, by a tool or a command. It comes before the run ends or waits, and replaces the one before it. `total` counts the files, also those that are not named. `is_complete` is false if the workspace was too large to look at all of it. */
export interface FilesChanged {
  files: Array<ChangedFile>;
  total: number;
  is_complete?: boolean;
}

/** A tool that the run does not have. `reason` is "profile", or why it is withheld. */
export interface FilteredTool {
  name: string;
  reason: string;
}

/** Sent every 15 s, and to move the cursor. `t` is RFC 3339, `head` the newest wire id. */
export interface Heartbeat {
  event: "hb";
  t: string;
  head: string;
}

/** A person edited the message of a task before its run began. */
export interface InputEdited {
  task: string;
  attachments?: Array<Attachment>;
}

/** The files of the message that a run starts with were fetched from its chat service. */
export interface InputFilesFetched {
  attachments: Array<Attachment>;
}

/** A message from a person: a new task, or steering of the current run. `resumed`: the person wrote nothing, but let a task that ended go on; `task` is its message. `commands` are those that the person ran before in the terminal and that the model reads with the message. */
export interface InputReceived {
  task: string;
  channel: string;
  sender: string;
  attachments?: Array<Attachment>;
  steer?: boolean;
  resumed?: boolean;
  commands?: Array<OwnCommand>;
}

/** What became of a message that steers the run and that no model has read yet. It waits for the next step, was edited or taken back by its writer, or was given back because the run was stopped or failed: then it starts nothing. `task` is its text. `GET /api/sessions/{session_id}/messages` has those that wait or were given back. A message that is delivered comes as `workflow.input.received`. */
export interface InputWaiting {
  number: number;
  state: "edited" | "given_back" | "taken_back" | "waiting";
  task: string;
}

/** The run's status changed. */
export interface LifecycleUpdated {
  status: "cancelled" | "completed" | "failed" | "queued" | "running" | "waiting";
  phase: string;
  stop_reason?: "await_tasks" | "await_user_input" | "blocked" | "budget_exceeded" | "error" | "final_answer" | "interrupted" | "max_iterations" | "max_output" | "rejected" | "timeout" | "user_stop";
}

/** An artifact in `workflow.artifact.manifest`. */
export interface ManifestEntry {
  artifact_id: string;
  name: string;
  version: number;
  type: "archive" | "audio" | "code" | "document" | "image" | "other" | "table" | "text" | "video";
  media_type: string;
  sha256: string;
  size: number;
  uri: string;
  caption?: string;
}

/** The model cannot answer now; it is asked again after `seconds`. `reason`: it is overloaded, its provider limits how often it is asked, it is still being loaded, or it cannot be reached. `attempt` counts the attempts of this reply: 2 is the first repetition. `attempts` is the last one if nothing changes, 0 if it is not known. `cause` is the error. */
export interface ModelRetry {
  node_id: string;
  reason: "loading" | "overloaded" | "rate_limited" | "unreachable";
  seconds: number;
  attempt: number;
  attempts?: number;
  cause?: string;
}

/** A stage, an iteration or a step is complete. */
export interface NodeCompleted {
  node_id: string;
  kind?: "artifact" | "diagnostic" | "generation" | "iteration" | "plan" | "question" | "result" | "step" | "subflow" | "tool";
  duration_ms: number;
  tokens_used?: number;
  tools_run?: number;
}

/** A stage, an iteration or a reply failed. `recoverable`: the run continues or can resume. */
export interface NodeFailed {
  node_id: string;
  kind?: "artifact" | "diagnostic" | "generation" | "iteration" | "plan" | "question" | "result" | "step" | "subflow" | "tool";
  phase: string;
  error: string;
  recoverable: boolean;
}

/** A stage, an iteration or a step started. A repeated id restarts it. */
export interface NodeStarted {
  node_id: string;
  kind?: "artifact" | "diagnostic" | "generation" | "iteration" | "plan" | "question" | "result" | "step" | "subflow" | "tool";
  step_index?: number;
  step_description?: string;
  iteration?: number;
}

/** A sentence for people about the files of the run or of its session. `about` is a file of the message that cannot be used, files that are on a host which is away, or files that are not kept. */
export interface Notice {
  about: "host" | "input_files" | "kept_files";
  text: string;
}

/** The next text of a reply. `k` counts the pieces of the node, `n` are joined in this one. */
export interface OutputDelta {
  node_id: string;
  k: number;
  n: number;
  text: string;
  reasoning?: boolean;
}

/** A reply is complete; `content` is its visible text. `thinking` is the reasoning before it, as far as the provider shows it, and `thinking_ms` how long it took. `context` is what the request held, with estimates; `usage` has the provider's count. `call_ids` are the first 64 calls of a reply with several, in the order in which they are shown: they start, and are refused, in any order. */
export interface OutputSummary {
  node_id: string;
  iteration: number;
  content: string;
  tool_call_count: number;
  llm_duration_ms: number;
  llm_request_id: string;
  llm_model: string;
  usage: Usage;
  thinking?: string;
  thinking_ms?: number;
  context?: ContextUse;
  call_ids?: Array<string>;
}

/** A command of a person, the end of what it printed, and its exit code. */
export interface OwnCommand {
  command: string;
  output?: string;
  exit_code?: number;
}

/** The whole text of an open node so far. It sets the text and `k`. `k: 0, text: ""`: the connection to the model broke and the reply restarts. */
export interface Partial {
  node_id: string;
  k: number;
  text: string;
}

/** The model was asked without parts that its server does not take, or its reply lost some. `what` are pictures, pictures that made the request too large, all tools, the tool `tool_name`, or what a content filter refused: results of tools, or the conversation before the run. `reply_pictures` are pictures of the reply that cannot be kept as files. */
export interface PartsLeftOut {
  node_id: string;
  what: "history" | "large_pictures" | "pictures" | "reply_pictures" | "results" | "tool" | "tools";
  count: number;
  tool_name?: string;
}

/** People whom the reply of the run notifies, besides those who wrote to it. `people` are principals, `names` their display names in the same order. */
export interface PeopleMentioned {
  people: Array<string>;
  names: Array<string>;
}

/** The plan of a run. A `plan` call makes the next version. One that is `made_by` Larkspur has the task as its only step: the agent made none. */
export interface Plan {
  version: number;
  goal: string;
  complexity: "complex" | "simple";
  steps: Array<PlanStep>;
  title?: string;
  made_by?: "agent" | "larkspur";
}

/** One step. `id` is short and stable across versions, such as `1` or `collect`. `success_criteria` are lines that say how the agent knows that the step is done. */
export interface PlanStep {
  id: string;
  description: string;
  status?: "completed" | "failed" | "in_progress" | "pending" | "skipped";
  success_criteria?: string;
  opened_by?: "agent" | "larkspur";
}

/** A new version of the plan, or a new status of a step. `made_by` is larkspur for a plan of one step that a gate made from the task. */
export interface PlanUpdated {
  version: number;
  goal: string;
  complexity: "complex" | "simple";
  steps: Array<PlanStep>;
  title?: string;
  made_by?: "agent" | "larkspur";
}

/** The single accepted answer to a question. `answered_name` is a display name. */
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

/** The run pauses until a person answers. `who`: operators only, or also the asker. `reason_code` says why a run cannot continue by itself: an `error_code`, or `crashed`. `asked_by` is the place of the subtask that asks, such as `task 2 · analyst`; `asker_number` and `asker_role` are its parts, 0 and "" for the task itself and in events of earlier versions. */
export interface QuestionAsked {
  question_id: string;
  kind: "approval" | "clarify" | "plan" | "recovery";
  title: string;
  body: string;
  options: Array<string>;
  expires_at: string;
  calls?: Array<ApprovalItem>;
  multiple?: boolean;
  plan?: Plan;
  who?: "asker" | "operators" | "owner";
  reason_code?: string;
  asked_by?: string;
  asker_number?: number;
  asker_role?: string;
}

/** The replay is complete; live events follow. */
export interface ReplayDone {
  event: "replay.done";
  head: string;
}

/** The end of the run because a person stopped it. What it used is as in an end of its own. `requested_name` is the display name of that person. `reason_code` says the reason to channels in other languages: stopped, plan_rejected, recalled, left_chat, interrupted, interrupted_by_other or creator; it is "" in events of earlier versions. */
export interface ResultCancelled {
  reason: string;
  requested_by: string;
  requested_via: string;
  requested_name?: string;
  usage?: Usage;
  duration_ms?: number;
  cost?: number;
  subtasks?: number;
  above?: Array<RunTotal>;
  reason_code?: string;
}

/** The end of the run, completed or failed. `usage` and `cost` are those of the run and all subtasks below it so far. `cost` covers models with a known price, in US dollars; absent if there is none. `duration_ms` is the time from the start of the run to its end, all waiting included. `subtasks` counts those below it. The end of a subtask has in `above` the new totals of the runs above it, which may have ended before. `error_code` is checkpoint_unreadable, internal_error or daily_limit_exceeded, or identifies an error of the model: model_key_refused, model_no_credit, model_quota_used_up, model_not_found, model_region_refused, model_unavailable, model_busy, model_rate_limited, model_loading, model_unreachable, model_wrong_address, model_rejected, model_message_filtered, model_picture_refused, model_document_refused, model_audio_refused, model_without_tools, model_tool_refused, model_refused, model_answer_filtered, model_empty, model_repeats, context_too_long, request_too_large. `model` is the model that wrote the answer in place of `instead_of`, which could not (`llm.fallbacks`). `calls_not_run` counts the calls of the last reply with calls that were not run. */
export interface ResultFinal {
  final_answer: string;
  stop_reason: "await_tasks" | "await_user_input" | "blocked" | "budget_exceeded" | "error" | "final_answer" | "interrupted" | "max_iterations" | "max_output" | "rejected" | "timeout" | "user_stop";
  total_iterations: number;
  usage: Usage;
  duration_ms: number;
  cost?: number;
  error?: string;
  error_code?: string;
  attachments?: Array<Attachment>;
  model?: string;
  instead_of?: string;
  calls_not_run?: number;
  subtasks?: number;
  above?: Array<RunTotal>;
}

/** What a run and all subtasks below it have used; `usage` and `cost` as in the end of a run. */
export interface RunTotal {
  run_id: string;
  usage: Usage;
  cost?: number;
}

/** A model gave the session of the run a title. It may come after the end of the run. */
export interface SessionTitled {
  title: string;
}

/** The client was too slow: ephemeral events after `since` are dropped; partials follow. */
export interface StreamDropped {
  event: "workflow.stream.dropped";
  since: string;
  nodes: Array<string>;
}

/** The cursor is not valid: drop all state and read again from `earliest`. */
export interface StreamReset {
  event: "stream.reset";
  reason: string;
  earliest: string;
  head: string;
}

/** All subtasks of a call have ended, `success` of them completed. */
export interface SubflowCompleted {
  call_id: string;
  success: number;
  failed: number;
}

/** What a subtask does; an event of its own run, at most one in two seconds. `completed` counts the subtasks of the outermost task that have ended, `tokens` and `tool_calls` those of this one so far. `preview` is what it does now. */
export interface SubflowProgress {
  subtask_index: number;
  total_subtasks: number;
  completed: number;
  tokens: number;
  tool_calls: number;
  preview: string;
}

/** The run that created a subtask learned of its end, or the run that reports it. `preview` is the beginning of its answer or error. */
export interface TaskCompleted {
  task_id: string;
  number: number;
  status: "cancelled" | "completed" | "failed" | "queued" | "running" | "waiting";
  stop_reason: "await_tasks" | "await_user_input" | "blocked" | "budget_exceeded" | "error" | "final_answer" | "interrupted" | "max_iterations" | "max_output" | "rejected" | "timeout" | "user_stop" | null;
  preview: string;
}

/** A subtask was created. `number` counts the subtasks of the outermost task. `profile` is the name of its profile and `role` what people read. `instruction` may be truncated. */
export interface TaskDispatched {
  task_id: string;
  call_id: string;
  number: number;
  total: number;
  instruction: string;
  profile: string;
  role: string;
  depends_on?: Array<string>;
}

/** A tool call ended or was not run. A failed call has `error` and no `result`. For a call that was returned to the model, `metadata` has `not_run`, the reason: plan, step, alone or gate for a gate, else plan_review, question, approvals or end. It and a denied call have `what`, the call for display, `subject`, its file, command or host, and `title`, as in the event of a start. */
export interface ToolCompleted {
  call_id: string;
  tool_name: string;
  duration_ms: number;
  result?: string;
  error?: string;
  attachments?: Array<Attachment>;
  metadata?: Record<string, unknown>;
}

/** The tools that exist and that the run does not have. `filtered` are the first ones, `count` is the number of all. */
export interface ToolFiltering {
  count: number;
  filtered: Array<FilteredTool>;
}

/** The next output of a running tool, counted as in a delta. `node_id` is the call id. A chat shows the last line of what the tool of an MCP server reports. */
export interface ToolProgress {
  node_id: string;
  k: number;
  n: number;
  text: string;
}

/** A tool call starts. Stored before its first effect. Long arguments are truncated, and attached in full. `title` is what people read in place of the name of a tool of an MCP server. */
export interface ToolStarted {
  call_id: string;
  tool_name: string;
  arguments: Record<string, unknown>;
  iteration: number;
  risk: string;
  attachments?: Array<Attachment>;
  title?: string;
}

/** Tokens of one or more model calls. `input_tokens` excludes cached tokens. */
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
  subtask_index?: number;
  total_subtasks?: number;
  subtask_preview?: string;
  max_parallel?: number;
}

export interface Payloads {
  "workflow.input.received": InputReceived;
  "workflow.input.waiting": InputWaiting;
  "workflow.input.edited": InputEdited;
  "workflow.input.files_fetched": InputFilesFetched;
  "workflow.people.mentioned": PeopleMentioned;
  "workflow.lifecycle.updated": LifecycleUpdated;
  "workflow.node.started": NodeStarted;
  "workflow.node.completed": NodeCompleted;
  "workflow.node.failed": NodeFailed;
  "workflow.node.retry": ModelRetry;
  "workflow.node.left_out": PartsLeftOut;
  "workflow.node.output.delta": OutputDelta;
  "partial": Partial;
  "workflow.node.output.summary": OutputSummary;
  "workflow.tool.started": ToolStarted;
  "workflow.tool.progress": ToolProgress;
  "workflow.tool.completed": ToolCompleted;
  "workflow.artifact.manifest": ArtifactManifest;
  "workflow.files.changed": FilesChanged;
  "background.task.dispatched": TaskDispatched;
  "background.task.completed": TaskCompleted;
  "workflow.subflow.progress": SubflowProgress;
  "workflow.subflow.completed": SubflowCompleted;
  "workflow.plan.updated": PlanUpdated;
  "workflow.question.asked": QuestionAsked;
  "workflow.question.answered": QuestionAnswered;
  "workflow.result.final": ResultFinal;
  "workflow.result.cancelled": ResultCancelled;
  "workflow.session.titled": SessionTitled;
  "workflow.feedback.given": FeedbackGiven;
  "workflow.notice": Notice;
  "workflow.diagnostic.error": DiagnosticError;
  "workflow.diagnostic.tool_filtering": ToolFiltering;
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
