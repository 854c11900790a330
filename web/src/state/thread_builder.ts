/** Builds the thread of a session: which line an event adds or updates. */
import { statusAfter, totalOf } from './run_reducer';
import { toolLabel } from '../lib/tool_label';
import type { Envelope, PlanStep } from '../stream/events';
import { isOver, keyOf, NO_LINES, type SubtaskLine, type Line, type Step, type Thread, type ToolLine } from './session_state';

/** A mutable copy of a thread. */
export class ThreadBuilder {
  private readonly lines: Line[];
  private readonly open: Record<string, number>;
  private readonly order: Record<string, readonly string[]>;

  constructor(thread: Thread) {
    this.lines = [...thread.lines];
    this.open = { ...thread.open };
    this.order = { ...thread.order };
  }

  thread(): Thread {
    return { lines: this.lines, open: this.open, order: this.order };
  }

  /** Add an event of a subtask to its lane, which is one of its outermost run. */
  applySubtask(event: Envelope): void {
    if (event.event === 'background.task.dispatched') {
      this.dispatch(event);
      return;
    }
    const key = keyOf(event.task_id, 'subtask');
    const known = this.lineAt(key);
    const before = known?.kind === 'subtask' ? known : newSubtask(event, key, event.task_id);
    const nested = new ThreadBuilder(before.thread);
    nested.apply(event);
    const thread = nested.thread();
    this.put({ ...reduceLane(before, event), ownRun: event.run_id, thread }, true);
  }

  /** Add the lane of a subtask that was created. */
  private dispatch(event: Extract<Envelope, { event: 'background.task.dispatched' }>): void {
    const { task_id: task, number, role, instruction: preview, depends_on: dependsOn = [] } = event.payload;
    const key = keyOf(task, 'subtask');
    const known = this.lineAt(key);
    const before = known?.kind === 'subtask' ? known : newSubtask(event, key, task);
    this.put({ ...before, number, role, preview, dependsOn }, true);
  }

  /** Add the line of an event, or update the line that it belongs to. */
  apply(event: Envelope): void {
    const run = event.run_id;
    const time = event.timestamp;
    switch (event.event) {
      case 'workflow.input.received': {
        const { task: text, channel, sender, attachments = [], steer = false, resumed = false } = event.payload;
        const key = event.event_id ?? keyOf(run, `input:${time}`);
        for (const [index, ran] of (event.payload.commands ?? []).entries()) {
          const { command, output = '', exit_code: code = 0 } = ran;
          this.put({ kind: 'own-command', key: `${key}:${index}`, run, time, command, output, code });
        }
        this.put({ kind: 'input', key, run, time, text, channel, sender, steer, resumed, attachments });
        return;
      }
      case 'workflow.input.edited': {
        const at = this.lines.findIndex((line) => line.kind === 'input' && line.run === run);
        const line = this.lines[at];
        if (line?.kind === 'input') {
          const { task: text, attachments = [] } = event.payload;
          this.lines[at] = { ...line, text, attachments };
        }
        return;
      }
      case 'workflow.input.files_fetched': {
        const at = this.lines.findIndex((line) => line.kind === 'input' && line.run === run);
        const line = this.lines[at];
        if (line?.kind === 'input') {
          this.lines[at] = { ...line, attachments: event.payload.attachments };
        }
        return;
      }
      case 'workflow.node.output.summary': {
        const { content: text, node_id: node, llm_model: model, tool_call_count: calls } =
          event.payload;
        const { thinking = '', thinking_ms: duration = 0, call_ids: ids } = event.payload;
        if (ids !== undefined) this.order[run] = ids.map((id) => keyOf(run, id));
        if (thinking !== '') {
          this.put({ kind: 'thought', key: keyOf(run, `${node}:thought`), run, time, text: thinking, duration });
        }
        if (text.trim() === '') return;
        this.put({ kind: 'say', key: keyOf(run, node), run, time, text, model, calls });
        return;
      }
      case 'workflow.node.left_out': {
        const { what, tool_name: tool = '' } = event.payload;
        this.put({ kind: 'left-out', key: keyOf(run, `${what}:${tool}:${time}`), run, time, parts: event.payload });
        return;
      }
      case 'workflow.tool.started': {
        const { call_id: call, tool_name: name, arguments: callArguments } = event.payload;
        const { attachments = [], title = '' } = event.payload;
        this.put({ ...newTool(run, time, call, name), title, arguments: callArguments, attachments }, true);
        return;
      }
      case 'workflow.tool.completed':
        this.finishTool(event);
        return;
      case 'workflow.plan.updated': {
        const { version, goal, complexity, made_by: by = 'agent' } = event.payload;
        const steps = event.payload.steps.map(toStep);
        const byLarkspur = by === 'larkspur';
        const key = keyOf(run, `plan:${version}`);
        const began = this.lineAt(key)?.time ?? time;
        this.put({ kind: 'plan', key, run, time: began, version, goal, complexity, byLarkspur, steps }, true);
        return;
      }
      case 'workflow.question.asked': {
        const key = keyOf(run, event.payload.question_id);
        this.put({ kind: 'question', key, run, time, asked: event.payload }, true);
        return;
      }
      case 'workflow.question.answered': {
        const asked = this.lineAt(keyOf(run, event.payload.question_id));
        if (asked?.kind === 'question') this.put({ ...asked, answered: event.payload });
        return;
      }
      case 'background.task.dispatched':
        this.dispatch(event);
        return;
      case 'workflow.notice': {
        const { about, text } = event.payload;
        this.put({ kind: 'say', key: event.event_id ?? keyOf(run, `${about}:${time}`), run, time, text, model: '', calls: 1 });
        return;
      }
      case 'workflow.result.final':
      case 'workflow.result.cancelled':
        this.endRun(event);
        return;
      default:
        return; // stages, iterations, failed nodes, diagnostics and unknown events have no line
    }
  }

  private finishTool(event: Extract<Envelope, { event: 'workflow.tool.completed' }>): void {
    const done = event.payload;
    const reason = done.metadata?.not_run;
    if (typeof reason === 'string') {
      const { tool_name: tool, call_id: call } = done;
      const key = keyOf(event.run_id, call);
      const { what = tool, subject = '', title = '' } = done.metadata ?? {};
      const texts = { what: String(what), subject: String(subject), title: String(title) };
      this.put({ kind: 'not-run', key, run: event.run_id, time: event.timestamp, tool, reason, ...texts });
      return;
    }
    const known = this.lineAt(keyOf(event.run_id, done.call_id));
    const line =
      known?.kind === 'tool'
        ? known
        : newTool(event.run_id, event.timestamp, done.call_id, done.tool_name);
    const error = done.error ?? '';
    const { exit_code: code, timed_out: timedOut, diff, denied, what, subject = '', title = line.title } = done.metadata ?? {};
    const failure = timedOut === true ? { timedOut } : typeof code === 'number' && code !== 0 ? { exit: code } : {};
    const refused = denied === true ? String(what ?? done.tool_name) : '';
    const hasFailed = done.error !== undefined || Object.keys(failure).length > 0;
    const status = refused !== '' ? 'denied' : hasFailed ? 'failed' : 'done';
    const change = { diff: typeof diff === 'string' ? diff : '', denied: refused, subject: String(subject), title: String(title), ...failure };
    const { result = '', duration_ms: duration } = done;
    const attachments = [...line.attachments, ...(done.attachments ?? [])];
    const configuration = textsOf(done.metadata?.configuration);
    const [declined, logged] = [textsOf(done.metadata?.declined), textsOf(done.metadata?.logged)];
    const { stopped: cause, stopped_by: by = '', stopped_by_id: principal = '', refusal: why, words = '' } = done.metadata ?? {};
    const refusal = typeof why === 'string' && { refusal: { why, words: String(words) } };
    const stopped = typeof cause === 'string' && { stopped: { cause, by: String(by), principal: String(principal) } };
    this.put({ ...line, status, result, error, duration, attachments, configuration, declined, logged, ...change, ...stopped, ...refusal });
  }

  private endRun(
    event: Extract<Envelope, { event: 'workflow.result.final' | 'workflow.result.cancelled' }>,
  ): void {
    const run = event.run_id;
    const placed = { kind: 'end', key: keyOf(run, 'result'), run, time: event.timestamp } as const;
    for (const key of Object.keys(this.open)) if (key.startsWith(`${run}/`)) delete this.open[key];
    delete this.order[run];
    if (event.event === 'workflow.result.cancelled') {
      const reason = event.payload.reason_code || event.payload.reason;
      const nothing = { answer: '', error: '', code: '' };
      this.put({ ...placed, status: 'cancelled', reason, ...nothing, ...totalOf(event.payload) });
      return;
    }
    const { final_answer: finalAnswer, stop_reason: reason } = event.payload;
    const said = this.lines.findLast((line) => line.run === run && line.kind === 'say');
    const answer = said?.kind === 'say' && said.text.trim() === finalAnswer.trim() ? '' : finalAnswer;
    const status = statusAfter(reason);
    const { error = '', error_code: code = '' } = event.payload;
    const { model = '', instead_of: first = '' } = event.payload;
    const { calls_not_run: missed = 0 } = event.payload;
    const notRun = missed > 0 && status === 'completed' ? { notRun: missed } : {};
    const fallback = first === '' ? {} : { fallback: { model, first } };
    this.put({ ...placed, status, reason, answer, error, code, ...totalOf(event.payload), ...notRun, ...fallback });
  }

  private lineAt(key: string): Line | undefined {
    const at = this.open[key];
    return at === undefined ? undefined : this.lines[at];
  }

  /** Replace the line with this key, or add it. An `isOpen` line may be updated later. */
  private put(line: Line, isOpen = false): void {
    const known = this.open[line.key];
    const at = known ?? this.insert(line);
    if (known !== undefined) this.lines[at] = line;
    if (isOpen) this.open[line.key] = at;
    else delete this.open[line.key];
  }

  /** Add a line after the others of its run, which stay together, and return its index. */
  private insert(line: Line): number {
    const before = this.placeOfCall(line);
    if (before >= 0) {
      this.insertAt(before, line);
      return before;
    }
    const end = this.lines.length;
    if (end === 0 || this.lines[end - 1]?.run === line.run) return this.lines.push(line) - 1;
    const last = this.lines.findLastIndex((one) => one.run === line.run);
    if (last < 0) return this.lines.push(line) - 1;
    this.insertAt(last + 1, line);
    return last + 1;
  }

  private insertAt(place: number, line: Line): void {
    this.lines.splice(place, 0, line);
    for (const [key, at] of Object.entries(this.open)) if (at >= place) this.open[key] = at + 1;
  }

  /** Return the index of the first line of a later call of the same reply, -1 if there is none. */
  private placeOfCall(line: Line): number {
    const keys = line.kind === 'tool' || line.kind === 'not-run' ? (this.order[line.run] ?? []) : [];
    const later = new Set(keys.slice(keys.indexOf(line.key) + 1));
    if (later.size === 0 || later.size === keys.length) return -1;
    let place = -1;
    for (let at = this.lines.length - 1; at >= 0; at -= 1) {
      const one = this.lines[at];
      if (one === undefined || (one.run === line.run && one.kind === 'input')) break;
      if (later.has(one.key)) place = at;
    }
    return place;
  }
}

/** Return a step of a plan as the page keeps it. */
export function toStep(step: PlanStep): Step {
  const { id, description, status = 'pending', success_criteria: criteria = '', opened_by: by = 'agent' } = step;
  return { id, description, status, criteria, byLarkspur: by === 'larkspur' };
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function newTool(run: string, time: string, call: string, name: string): ToolLine {
  return {
    kind: 'tool',
    key: keyOf(run, call),
    run,
    time,
    call,
    name,
    title: '',
    arguments: {},
    status: 'running',
    result: '',
    error: '',
    duration: 0,
    attachments: [],
    diff: '',
    denied: '',
    subject: '',
    configuration: [],
    declined: [],
    logged: [],
  };
}

function newSubtask(event: Envelope, key: string, task: string): SubtaskLine {
  return {
    kind: 'subtask',
    key,
    run: event.is_subtask ? event.correlation_id : event.run_id,
    time: event.timestamp,
    task,
    number: event.subtask_index ?? 0,
    role: '',
    preview: event.subtask_preview ?? '',
    dependsOn: [],
    status: 'queued',
    reason: null,
    activity: '',
    started: '',
    duration: 0,
    cost: null,
    error: '',
    notRun: 0,
    ownRun: '',
    thread: NO_LINES,
  };
}

/** Return a lane after an event of its subtask: its state and what it does now. */
function reduceLane(lane: SubtaskLine, event: Envelope): SubtaskLine {
  switch (event.event) {
    case 'workflow.lifecycle.updated': {
      const { status, stop_reason: reason = null } = event.payload;
      if (isOver(lane.status)) return lane;
      const started = lane.started === '' && status === 'running' ? event.timestamp : lane.started;
      return { ...lane, status, reason, started };
    }
    case 'workflow.tool.started':
      return { ...lane, activity: toolLabel(event.payload.tool_name, event.payload.title) };
    case 'workflow.subflow.progress':
      return { ...lane, activity: event.payload.preview };
    case 'workflow.result.final': {
      const { stop_reason: reason, error = '', calls_not_run: notRun = 0 } = event.payload;
      const { cost, duration } = totalOf(event.payload);
      return { ...lane, status: statusAfter(reason), reason, notRun, duration, cost, error, activity: '' };
    }
    case 'workflow.result.cancelled': {
      const { cost, duration } = totalOf(event.payload);
      return { ...lane, status: 'cancelled', reason: 'user_stop', duration, cost, activity: '' };
    }
    default:
      return lane;
  }
}
