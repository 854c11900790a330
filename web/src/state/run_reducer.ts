/** Reduces events to the state of a run: status, usage and ended nodes. */
import type { Envelope, Status, StopReason, Usage } from '../stream/events';
import { isOver, NO_TOKENS, type RunState, type Tokens } from './session_state';

/** Late deltas arrive soon after their node has ended. */
const MAX_ENDED_NODES = 64;

/** The live node that shows a wait for the model, as a reply. */
export const RETRY = 'retry:say';

/** The events that a queued run can have. One of which others are known first has begun before. */
const WHILE_QUEUED = new Set(['workflow.input.received', 'workflow.input.edited', 'workflow.lifecycle.updated']);

export function newRun(event: Envelope): RunState {
  return {
    run: event.run_id,
    task: event.task_id,
    text: '',
    channel: '',
    status: WHILE_QUEUED.has(event.event) ? 'queued' : 'running',
    reason: null,
    notRun: 0,
    started: event.timestamp,
    usage: NO_TOKENS,
    cost: null,
    subtasks: null,
    duration: 0,
    iterations: 0,
    ended: [],
  };
}

export function reduceRun(run: RunState, event: Envelope): RunState {
  switch (event.event) {
    case 'workflow.input.received':
      return run.text === '' && event.payload.steer !== true ? { ...run, text: event.payload.task, channel: event.payload.channel } : run;
    case 'workflow.input.edited':
      return { ...run, text: event.payload.task };
    case 'workflow.lifecycle.updated': {
      const { status, stop_reason: reason } = event.payload;
      if (isOver(run.status)) return run;
      // a run that waited for its subtasks began when it first ran
      const begins = run.status === 'queued' && run.iterations === 0;
      const started = begins ? event.timestamp : run.started;
      return { ...run, status, reason: reason ?? null, started };
    }
    case 'workflow.node.started': {
      const { node_id: node } = event.payload;
      const ended = run.ended.filter((one) => one !== node && !one.startsWith(`${node}:`));
      const iterations = Math.max(run.iterations, event.payload.iteration ?? 0);
      return { ...run, iterations, ended };
    }
    case 'workflow.node.output.summary':
      return {
        ...run,
        usage: sumTokens([run.usage, toTokens(event.payload.usage)]),
        ended: [...run.ended, ...endedNodes(event)].slice(-MAX_ENDED_NODES),
      };
    case 'workflow.tool.started':
      return { ...run, ended: run.ended.filter((one) => one !== event.payload.call_id) };
    case 'workflow.node.failed':
    case 'workflow.tool.completed':
      return { ...run, ended: [...run.ended, ...endedNodes(event)].slice(-MAX_ENDED_NODES) };
    case 'workflow.result.final': {
      const { stop_reason: reason } = event.payload;
      const passed = Math.max(0, Date.parse(event.timestamp) - Date.parse(run.started));
      const duration = run.subtasks === null ? event.payload.duration_ms : passed;
      const usage = toTokens(event.payload.usage);
      const status = statusAfter(reason);
      const { cost = null, calls_not_run: notRun = 0 } = event.payload;
      return { ...run, status, reason, notRun, usage, cost, duration, ended: [] };
    }
    case 'workflow.result.cancelled':
      return { ...run, status: 'cancelled', reason: run.reason ?? 'user_stop', ended: [] };
    default:
      return run;
  }
}

/** Return a run after the end of one of its subtasks. */
export function addSubtask(run: RunState, event: Extract<Envelope, { event: 'workflow.result.final' }>): RunState {
  const known = run.subtasks ?? { usage: NO_TOKENS, cost: null };
  const { cost = null } = event.payload;
  const usage = sumTokens([known.usage, toTokens(event.payload.usage)]);
  const sum = cost === null ? known.cost : (known.cost ?? 0) + cost;
  return { ...run, subtasks: { usage, cost: sum } };
}

export function statusAfter(reason: StopReason): Status {
  return /^(final|max)_/.test(reason) ? 'completed' : 'failed';
}

/** Return the nodes that an event ends; the reasoning ends with its reply. */
export function endedNodes(event: Envelope): string[] {
  switch (event.event) {
    case 'workflow.node.output.summary':
    case 'workflow.node.failed': {
      const node = event.payload.node_id;
      return node.endsWith(':say') ? [node, node.replace(/say$/, 'think'), RETRY] : [node];
    }
    case 'workflow.tool.completed':
      return [event.payload.call_id];
    default:
      return [];
  }
}

export function toTokens(usage: Usage): Tokens {
  const { input_tokens = 0, output_tokens = 0, cache_read_tokens = 0, cache_write_tokens = 0 } = usage;
  return { in: input_tokens, cached: cache_read_tokens + cache_write_tokens, out: output_tokens };
}

export function sumTokens(tokens: readonly Tokens[]): Tokens {
  return tokens.reduce(
    (sum, one) => ({
      in: sum.in + one.in,
      cached: sum.cached + one.cached,
      out: sum.out + one.out,
    }),
    NO_TOKENS,
  );
}
