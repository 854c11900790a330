/** Reduces events to the state of a run: status, usage and ended nodes. */
import type { Envelope, Payloads, Status, StopReason, Usage } from '../stream/events';
import { isOver, NO_TOKENS, type RunState, type Tokens } from './session_state';

/** The payload of the last event of a run; an old one may lack what it used. */
type EndOfRun = Pick<Partial<Payloads['workflow.result.final']>, 'usage' | 'cost' | 'duration_ms'>;

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
      const { calls_not_run: notRun = 0 } = event.payload;
      return { ...run, status: statusAfter(reason), reason, notRun, ...totalOf(event.payload), ended: [] };
    }
    case 'workflow.result.cancelled':
      return { ...run, status: 'cancelled', reason: run.reason ?? 'user_stop', ...totalOf(event.payload), ended: [] };
    default:
      return run;
  }
}

/** Return an outermost run after an event of one of the subtasks below it. */
export function reduceBelow(run: RunState, event: Envelope): RunState {
  switch (event.event) {
    case 'workflow.node.output.summary':
      // what an ended run used is known from the ends of its subtasks
      return isOver(run.status) ? run : { ...run, usage: sumTokens([run.usage, toTokens(event.payload.usage)]) };
    case 'workflow.result.final':
    case 'workflow.result.cancelled': {
      const total = event.payload.above?.find((one) => one.run_id === run.run);
      if (total === undefined || !isOver(run.status)) return run;
      return { ...run, usage: toTokens(total.usage), cost: total.cost ?? null };
    }
    default:
      return run;
  }
}

/** Return what a run used, its subtasks included, and how long it took. */
export function totalOf(end: EndOfRun): { usage: Tokens; cost: number | null; duration: number } {
  return { usage: toTokens(end.usage ?? {}), cost: end.cost ?? null, duration: end.duration_ms ?? 0 };
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
