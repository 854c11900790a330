// Written from the program's own types by `make generate`; not edited by hand.

/** The answer that counted: who gave it, through what, when. `by` is a principal. */
export interface AnswerView {
  decision: "approve" | "edit" | "expired" | "reject" | "text";
  text: string;
  by: string;
  name: string;
  via: string;
  at: string;
  edit: PlanEdit | null;
  choices: Array<number>;
  items: Record<string, boolean>;
  grant: "once" | "rule" | "session";
  rules: Array<string>;
}

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

/** What people did, newest first. */
export interface AuditView {
  deeds: Array<DeedView>;
}

/** Who did what to which thing, through what. */
export interface DeedView {
  at: string;
  principal: string;
  via: string;
  action: "pairing.offered" | "pairing.refused" | "pairing.taken" | "person.removed" | "question.answered" | "question.asked" | "question.refused" | "rule.removed" | "rule.written" | "session.deleted" | "task.stopped";
  target: string;
  detail: string;
}

/** The body of every answer that is an error. */
export interface ErrorBody {
  error: Fault;
}

/** A durable event under its wire id, the same envelope as on the stream. */
export interface EventRow {
  id: string;
  event: unknown;
}

/** Events, oldest first. `next` is None at the end of the log; `head` and `earliest` are ids. */
export interface EventsPage {
  events: Array<EventRow>;
  next: string | null;
  head: string;
  earliest: string;
}

/** What went wrong: `code` for programs, `message` for people. */
export interface Fault {
  code: string;
  message: string;
  request_id: string;
}

/** How the program is: `failing` when it cannot do what it is asked. */
export interface Health {
  status: "failing" | "ok";
  database: PartHealth;
  dispatcher: PartHealth;
  lark?: PartHealth;
}

/** An address that logs one browser in, once, for `seconds`. */
export interface LinkView {
  url: string;
  seconds: number;
}

/** Who asks, and which model answers unless a task names another. */
export interface MeView {
  id: string;
  name: string;
  roles: Array<"operate" | "owner" | "talk">;
  provider: string;
  model: string;
}

/** A message of a conversation, without the model's thinking. `parts` carry their `type`. */
export interface MessageView {
  number: number;
  run_id: string;
  role: "assistant" | "user";
  created: string;
  parts: Array<Record<string, unknown>>;
}

/** Messages, oldest first. `next` leads to older ones, None at the beginning. */
export interface MessagesPage {
  messages: Array<MessageView>;
  next: string | null;
}

/** A code that gives a right to whoever says `/pair CODE` first, until it expires (RFC 3339). */
export interface PairingView {
  code: string;
  expires: string;
}

/** How one part is, and `since` when (RFC 3339). */
export interface PartHealth {
  ok: boolean;
  since: string;
  detail?: string;
}

/** Who was given rights besides those of the settings, oldest first. */
export interface PeopleView {
  people: Array<PersonView>;
}

/** A person who was given a right. */
export interface PersonView {
  principal: string;
  name: string;
  role: "operate" | "owner" | "talk";
  via: string;
  created: string;
}

/** What the model intends. A `plan` call makes the next version; `update_plan` moves steps. */
export interface Plan {
  version: number;
  goal: string;
  complexity: "complex" | "simple";
  steps: Array<PlanStep>;
  title?: string;
}

/** A plan as a person wants it: 1 to 50 steps in order; `goal` "" keeps the goal. */
export interface PlanEdit {
  steps: Array<string>;
  goal?: string;
}

/** One step. `id` is short and stable over versions, such as `1` or `collect`. */
export interface PlanStep {
  id: string;
  description: string;
  status?: "completed" | "failed" | "in_progress" | "pending" | "skipped";
}

/** Who the agent can be. `tools` None: all of them. */
export interface ProfileView {
  name: string;
  role: string;
  goal: string;
  tone: string;
  tools: Array<string> | null;
  model: string | null;
}

/** The profiles, and which one a task gets that names none. */
export interface ProfilesView {
  profiles: Array<ProfileView>;
  default: string;
}

/** A question: `calls` of an approval, the `plan` of a review, `task` the words that led to it. `may_answer`: it is open and whoever asks may answer it; what fits says `answer_schema`. */
export interface QuestionView {
  question_id: string;
  run_id: string;
  task_id: string;
  session_id: string;
  channel: "cli" | "lark" | "web";
  task: string;
  kind: "approval" | "clarify" | "plan";
  title: string;
  body: string;
  options: Array<string>;
  multiple: boolean;
  calls: Array<ApprovalItem>;
  plan: Plan | null;
  who: "asker" | "operators";
  status: "answered" | "closed" | "expired" | "open";
  asked: string;
  expires: string;
  may_answer: boolean;
  answer: AnswerView | null;
  answer_schema: Record<string, unknown>;
}

/** Questions, newest first. `next` is None at the end. */
export interface QuestionsPage {
  questions: Array<QuestionView>;
  next: string | null;
}

/** A rule that a person wrote by answering. `place` is a session, a chat or a person's tasks. */
export interface RuleView {
  number: number;
  place: string;
  rule: string;
  principal: string;
  via: string;
  question_id: string;
  created: string;
}

/** The rules that people wrote, newest first. */
export interface RulesView {
  rules: Array<RuleView>;
}

/** A task's newest run. `cost` in US dollars when known. */
export interface RunView {
  run_id: string;
  status: "cancelled" | "completed" | "failed" | "queued" | "running" | "waiting";
  stop_reason: "await_user_input" | "budget_exceeded" | "error" | "final_answer" | "interrupted" | "max_iterations" | "rejected" | "timeout" | "user_stop" | null;
  attempt: number;
  answer: string;
  usage: Usage;
  cost: number | null;
  error: string;
}

/** A session in a list: the status of its newest task, and how many it has. */
export interface SessionRow {
  session_id: string;
  title: string;
  channel: "cli" | "lark" | "web";
  created: string;
  updated: string;
  status: "cancelled" | "completed" | "failed" | "queued" | "running" | "waiting" | null;
  tasks: number;
}

/** A session. */
export interface SessionView {
  session_id: string;
  title: string;
  channel: "cli" | "lark" | "web";
  created: string;
  updated: string;
}

/** Sessions, last active first. `next` is None at the end. */
export interface SessionsPage {
  sessions: Array<SessionRow>;
  next: string | null;
}

/** What became of words for a session: steering for the run at work, or the next task. */
export interface Steered {
  taken_as: "steering" | "task";
  task_id: string;
  run_id: string;
  session_id: string;
}

/** What became of a stop: `running` will end within 2 s, `cancelled` has ended. */
export interface StopView {
  task_id: string;
  status: "cancelled" | "completed" | "failed" | "queued" | "running" | "waiting";
}

/** What became of it. `status` is the task's status at that moment. */
export interface Submitted {
  task_id: string;
  run_id: string;
  session_id: string;
  status: "cancelled" | "completed" | "failed" | "queued" | "running" | "waiting";
}

/** A task. */
export interface TaskView {
  task_id: string;
  session_id: string;
  kind: "background" | "chat";
  task: string;
  channel: "cli" | "lark" | "web";
  profile: string;
  model: string;
  status: "cancelled" | "completed" | "failed" | "queued" | "running" | "waiting";
  stop_reason: "await_user_input" | "budget_exceeded" | "error" | "final_answer" | "interrupted" | "max_iterations" | "rejected" | "timeout" | "user_stop" | null;
  created: string;
  attachments: Array<Attachment>;
}

/** A task and how far it is. */
export interface TaskWithRun {
  task_id: string;
  session_id: string;
  kind: "background" | "chat";
  task: string;
  channel: "cli" | "lark" | "web";
  profile: string;
  model: string;
  status: "cancelled" | "completed" | "failed" | "queued" | "running" | "waiting";
  stop_reason: "await_user_input" | "budget_exceeded" | "error" | "final_answer" | "interrupted" | "max_iterations" | "rejected" | "timeout" | "user_stop" | null;
  created: string;
  attachments: Array<Attachment>;
  run: RunView;
}

/** Tasks, newest first. `next` is None at the end. */
export interface TasksPage {
  tasks: Array<TaskView>;
  next: string | null;
}

/** Tokens of one or many model calls. Cached tokens are not part of `input_tokens`. */
export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
}

/** What was used under a key. `cost` in US dollars, of what has a known price. */
export interface UsageRow {
  key: string;
  usage: Usage;
  cost: number | null;
}

/** What was used, the newest key first. */
export interface UsageView {
  usage: Array<UsageRow>;
}
