/** Envelopes as the server makes them, and scripts of them for properties. */
import * as fc from 'fast-check';
import type { Envelope, EventName, Payloads } from '../src/stream/events.gen';
import type { Row } from '../src/state/session_state';

const USAGE = { input_tokens: 10, output_tokens: 5, cache_read_tokens: 0, cache_write_tokens: 0 };

/** Writes rows as one log does: durable ones get the next position, ephemeral ones none. */
export class Log {
  private position = 0;
  private readonly seq = new Map<string, number>();

  durable<Name extends EventName>(
    run: string,
    event: Name,
    payload: Payloads[Name],
    more: { [key: string]: unknown } = {},
  ): Row {
    this.position += 1;
    const seq = (this.seq.get(run) ?? 0) + 1;
    this.seq.set(run, seq);
    const event_id = `evt-${run}-${seq}`;
    return {
      id: `abcdef-${this.position}`,
      event: { ...head(run), seq, event_id, event, payload, ...more } as Envelope,
    };
  }

  ephemeral<Name extends EventName>(run: string, event: Name, payload: Payloads[Name]): Row {
    return { event: { ...head(run), event, payload } as Envelope };
  }
}

function head(run: string) {
  return {
    version: 1,
    timestamp: '2026-01-31T08:00:00.000Z',
    session_id: 'session-1',
    task_id: `task-${run}`,
    run_id: run,
    agent_level: 'core',
    correlation_id: run,
    log_id: `log-${run}`,
    is_subtask: false,
  };
}

/** A run from its input to its end, with every kind of row, in the order the engine makes them. */
export function wholeRun(log: Log, run: string): Row[] {
  const say = 'iter:1:say';
  return [
    log.durable(run, 'workflow.input.received', {
      task: `do ${run}`,
      channel: 'web',
      sender: 'local',
      attachments: [],
    }),
    log.durable(run, 'workflow.lifecycle.updated', { status: 'running', phase: 'prepare' }),
    log.durable(run, 'workflow.node.started', { node_id: 'iter:1', kind: 'iteration', iteration: 1 }),
    ...deltas(log, run, say, ['I ', 'look ', 'first']),
    log.durable(run, 'workflow.node.output.summary', {
      node_id: say,
      iteration: 1,
      content: 'I look first',
      tool_call_count: 1,
      llm_duration_ms: 5,
      llm_request_id: 'r',
      llm_model: 'm',
      usage: USAGE,
    }),
    log.durable(run, 'workflow.plan.updated', {
      version: 1,
      goal: 'a goal',
      complexity: 'complex',
      steps: [{ id: '1', description: 'one', status: 'in_progress' }],
    }),
    log.durable(run, 'workflow.tool.started', {
      call_id: 'call-1',
      tool_name: 'shell',
      arguments: { command: 'ls' },
      iteration: 1,
      risk: 'exec',
      attachments: [],
    }),
    ...deltas(log, run, 'call-1', ['a', 'b'], 'workflow.tool.progress'),
    log.durable(run, 'workflow.diagnostic.error', { phase: 'gate', error: 'x', recoverable: true }),
    log.durable(run, 'workflow.tool.completed', {
      call_id: 'call-1',
      tool_name: 'shell',
      duration_ms: 3,
      result: 'ab',
      attachments: [],
      metadata: {},
    }),
    manifest(log, run, 'chart.png'),
    log.durable(run, 'workflow.plan.updated', {
      version: 1,
      goal: 'a goal',
      complexity: 'complex',
      steps: [{ id: '1', description: 'one', status: 'completed' }],
    }),
    log.durable(run, 'workflow.result.final', {
      final_answer: 'done',
      stop_reason: 'final_answer',
      total_iterations: 1,
      usage: USAGE,
      duration_ms: 9,
      attachments: [],
    }),
  ];
}

/** The event of one file that a run made, and of two that are not kept. */
export function manifest(log: Log, run: string, name: string, version = 1): Row {
  const file = { name, version, type: 'image', media_type: 'image/png', sha256: 'ab', size: 9 } as const;
  return log.durable(run, 'workflow.artifact.manifest', {
    artifacts: [{ artifact_id: `artifact-${run}-${name}-${version}`, uri: 'attachment:ab', ...file }],
    call_id: 'call-1',
    source_tool: 'shell',
    omitted: 2,
  });
}

export function question(id: string, more: object = {}): Payloads['workflow.question.asked'] {
  return {
    question_id: id,
    kind: 'clarify',
    title: 'Which one?',
    body: '',
    options: ['this', 'that'],
    expires_at: '2026-02-01T08:00:00.000Z',
    calls: [],
    multiple: false,
    who: 'operators',
    ...more,
  };
}

export function answered(id: string, more: object = {}): Payloads['workflow.question.answered'] {
  return {
    question_id: id,
    decision: 'text',
    text: 'this',
    answered_by: 'lark:ou_bo',
    answered_name: 'Bo',
    answered_via: 'lark',
    ...more,
  };
}

export function deltas(
  log: Log,
  run: string,
  node_id: string,
  pieces: string[],
  event: 'workflow.node.output.delta' | 'workflow.tool.progress' = 'workflow.node.output.delta',
): Row[] {
  return pieces.map((text, at) => log.ephemeral(run, event, { node_id, k: at + 1, n: 1, text }));
}

/** Any rows at all: any order, any run, durable and not, known types and unknown ones. */
export const anyRows: fc.Arbitrary<Row[]> = fc
  .array(fc.tuple(fc.nat(12), fc.constantFrom('A', 'B', 'C'), fc.nat(4), fc.nat(3)), { maxLength: 60 })
  .map((choices) => {
    const log = new Log();
    return choices.map(([kind, run, k, n]) => anyRow(log, kind, run, k, n));
  });

function anyRow(log: Log, kind: number, run: string, k: number, n: number): Row {
  const say = `iter:${n}:say`;
  const whole = wholeRun(new Log(), run);
  switch (kind) {
    case 0:
      return log.ephemeral(run, 'workflow.node.output.delta', { node_id: say, k, n, text: `${k}` });
    case 1:
      return log.ephemeral(run, 'partial', { node_id: say, k, text: 'p'.repeat(k) });
    case 2:
      return log.durable(run, 'workflow.node.started', { node_id: `iter:${n}`, kind: 'iteration' });
    case 3:
      return log.durable(run, 'workflow.later.invented' as EventName, { new: true } as never);
    case 4:
      return log.durable(
        run,
        'workflow.tool.started',
        { call_id: 'c', tool_name: 't', arguments: {}, iteration: 1, risk: 'read', attachments: [] },
        { is_subtask: true },
      );
    case 5:
      return log.durable(run, 'workflow.question.asked', question(`${run}-${n}`));
    case 6:
      return log.durable(run, 'workflow.question.answered', answered(`${run}-${n}`));
    default: {
      const one = whole[(k * 4 + n + kind) % whole.length];
      if (one === undefined) throw new Error('a run has rows');
      return one.id === undefined
        ? one
        : log.durable(run, one.event.event, one.event.payload as never);
    }
  }
}
