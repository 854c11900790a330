import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EventName } from '../../src/stream/events.gen';
import { activeRun, markGaps, reduceEvents, reduceEvent, withoutLive } from '../../src/state/event_reducer';
import { EMPTY, isAfterCursor, type Row, type State } from '../../src/state/session_state';
import { anyRows, deltas, Log, manifest, wholeRun } from '../envelopes';

const lines = (state: State) => state.thread.lines.map((line) => line.kind);
const shape = (state: State) => state.thread.lines.map((line) => [line.run, line.kind, line.key]);
const live = (state: State) => Object.values(state.live).map((node) => node.text);

describe('reducing events', () => {
  test('files that were fetched for a message are those of its line', () => {
    const log = new Log();
    const file = { name: 'a.pdf', media_type: 'application/pdf', uri: 'attachment:1', sha256: '1', size: 1 };
    const rows = [...wholeRun(log, 'A'), ...wholeRun(log, 'B')];
    rows.push(log.durable('A', 'workflow.input.files_fetched', { attachments: [file] }));
    const inputs = reduceEvents(EMPTY, rows).thread.lines.filter((line) => line.kind === 'input');
    expect(inputs.map((line) => line.attachments)).toEqual([[file], []]);
  });

  test('a message that was edited before its run began is shown as it is now', () => {
    const log = new Log();
    const rows = [...wholeRun(log, 'A'), ...wholeRun(log, 'B')];
    const before = reduceEvents(EMPTY, rows);
    rows.push(log.durable('A', 'workflow.input.edited', { task: 'new words' }));
    const after = reduceEvents(EMPTY, rows);
    const texts = (state: typeof after) => state.thread.lines.filter((line) => line.kind === 'input').map((line) => line.text);
    expect(texts(after)).toEqual(['new words', ...texts(before).slice(1)]);
  });

  test('changed files that an event counts and does not name are known to exist', () => {
    const log = new Log();
    const files = [{ path: 'a', kind: 'created' as const }];
    const rows = wholeRun(log, 'A');
    rows.push(log.durable('A', 'workflow.files.changed', { files, total: 1, is_complete: true }));
    expect(reduceEvents(EMPTY, rows)).toMatchObject({ changed: ['a'], moreChanged: false });
    rows.push(log.durable('A', 'workflow.files.changed', { files, total: 7, is_complete: true }));
    expect(reduceEvents(EMPTY, rows)).toMatchObject({ changed: ['a'], moreChanged: true });
  });

  test('a prefix and then the rest give the same state as all events', () => {
    fc.assert(
      fc.property(anyRows, fc.nat(60), (rows, cut) => {
        const parted = reduceEvents(reduceEvents(EMPTY, rows.slice(0, cut)), rows.slice(cut));
        expect(parted).toEqual(reduceEvents(EMPTY, rows));
      }),
      { numRuns: 500 },
    );
  });

  test('events one by one give the same state as all events, and no given state is changed', () => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        const states = [EMPTY];
        for (const row of rows) states.push(reduceEvent(states.at(-1) ?? EMPTY, row));
        const copies = structuredClone(states);
        for (const [at, row] of rows.entries()) reduceEvent(states[at] ?? EMPTY, row);
        expect(states).toEqual(copies);
        expect(states.at(-1)).toEqual(reduceEvents(EMPTY, rows));
      }),
    );
  });

  test('events at or before the cursor are ignored', () => {
    fc.assert(
      fc.property(anyRows, fc.nat(60), (rows, from) => {
        const state = reduceEvents(EMPTY, rows);
        const durable = rows.filter((row) => row.id !== undefined);
        expect(reduceEvents(state, durable.slice(from))).toEqual(state);
      }),
    );
  });

  test('the state without live nodes depends on the cursor only', () => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        const page = rows.filter((row) => row.id !== undefined);
        expect(withoutLive(reduceEvents(EMPTY, rows))).toEqual(withoutLive(reduceEvents(EMPTY, page)));
      }),
    );
  });

  test('a whole run is reduced to its lines', () => {
    const state = reduceEvents(EMPTY, wholeRun(new Log(), 'A'));
    expect(lines(state)).toEqual(['input', 'say', 'plan', 'tool', 'end']);
    expect(state.runs[0]).toMatchObject({ status: 'completed', text: 'do A', duration: 9 });
    expect(state.live).toEqual({});
    expect(state.thread.open).toEqual({});
    expect(activeRun(state)).toBeUndefined();
    const [, , plan, tool, end] = state.thread.lines;
    expect(plan).toMatchObject({ steps: [{ status: 'completed' }] });
    expect(tool).toMatchObject({ status: 'done', result: 'ab', arguments: { command: 'ls' } });
    expect(end).toMatchObject({ answer: 'done', cost: null });
  });

  test('the lines of a run stay together, however the events of runs are mixed', () => {
    const runs = ['A', 'B', 'C'];
    fc.assert(
      fc.property(fc.array(fc.nat(2), { maxLength: 80 }), (order) => {
        const log = new Log();
        const waiting = runs.map((run) => wholeRun(new Log(), run).filter((row) => row.id !== undefined));
        const mixed = [...order, ...runs.flatMap((_, at) => Array(20).fill(at) as number[])].flatMap((at) => {
          const event = waiting[at]?.shift()?.event;
          return event === undefined ? [] : [log.durable(event.run_id, event.event, event.payload as never)];
        });
        const seen = [...new Set(mixed.map((row) => row.event.run_id))];
        const sorted = seen.flatMap((run) => mixed.filter((row) => row.event.run_id === run));
        const renumbered = sorted.map((row, at) => ({ ...row, id: `abcdef-${at + 1}` }));
        const state = reduceEvents(EMPTY, mixed);
        expect(shape(state)).toEqual(shape(reduceEvents(EMPTY, renumbered)));
        expect(state.thread.open).toEqual({});
      }),
    );
  });

  test('reasoning is a line of its own before its reply, and failed nodes are none', () => {
    const log = new Log();
    const [input] = wholeRun(log, 'A');
    const reply = { iteration: 1, tool_call_count: 0, llm_duration_ms: 5, llm_request_id: 'r', llm_model: 'm', usage: {} };
    const state = reduceEvents(EMPTY, [
      input as Row,
      log.durable('A', 'workflow.node.output.summary', {
        ...reply,
        node_id: 'iter:1:say',
        content: 'So',
        thinking: 'Hm',
        thinking_ms: 12_000,
      } as never),
      log.durable('A', 'workflow.node.failed', { node_id: 'iter:2:say', kind: 'generation', phase: 'think', error: 'x', recoverable: false }),
    ]);
    expect(lines(state)).toEqual(['input', 'thought', 'say']);
    expect(state.thread.lines[1]).toMatchObject({ text: 'Hm', duration: 12_000 });
  });

  test('files that runs made are collected with their run, and sent ones apart from outputs', () => {
    const log = new Log();
    const file = { name: 'a.csv', media_type: 'text/csv', uri: 'attachment:1', sha256: '1', size: 3 };
    const output = { ...file, name: 'output.txt', sha256: '2' };
    const state = reduceEvents(EMPTY, [
      log.durable('A', 'workflow.input.received', { task: 'x', channel: 'web', sender: 'o', attachments: [file] }),
      log.durable('A', 'workflow.tool.completed', {
        call_id: 'c',
        tool_name: 't',
        duration_ms: 1,
        result: '',
        attachments: [output],
        metadata: {},
      }),
      manifest(log, 'A', 'chart.png'),
      manifest(log, 'B', 'chart.png', 2),
    ]);
    expect(state.files.map((one) => [one.name, one.sent])).toEqual([['a.csv', true], ['output.txt', false]]);
    expect(state.artifacts.map((one) => [one.name, one.version, one.run])).toEqual([
      ['chart.png', 1, 'A'],
      ['chart.png', 2, 'B'],
    ]);
    expect(state.omitted).toBe(4);
  });

  test('notices are lines, diagnostics are none', () => {
    const log = new Log();
    const state = reduceEvents(EMPTY, [
      log.durable('A', 'workflow.notice', { about: 'host', text: 'a host is away' }),
      log.durable('A', 'workflow.diagnostic.error', { phase: 'prepare', error: 'inner', recoverable: true }),
      log.durable('A', 'workflow.notice', { about: 'input_files', text: 'a file is damaged' }),
    ]);
    const said = state.thread.lines.map((line) => (line.kind === 'say' ? line.text : line.kind));
    expect(said).toEqual(['a host is away', 'a file is damaged']);
  });

  test('unknown events only move the cursor', () => {
    const log = new Log();
    const row = log.durable('A', 'workflow.later.invented' as EventName, {} as never);
    const state = reduceEvents(EMPTY, [row]);
    expect(lines(state)).toEqual([]);
    expect(state.cursor).toBe(row.id);
  });

  test('events of another log are ignored', () => {
    expect(isAfterCursor('abcdef-10', 'abcdef-9')).toBe(true);
    expect(isAfterCursor('abcdef-9', 'abcdef-9')).toBe(false);
    expect(isAfterCursor('fedcba-10', 'abcdef-9')).toBe(false);
    expect(isAfterCursor('abcdef-1', '')).toBe(true);
  });
});

const delta = (k: number, n: number, text: string) =>
  new Log().ephemeral('A', 'workflow.node.output.delta', { node_id: 'iter:1:say', k, n, text });
const partial = (k: number, text: string) =>
  new Log().ephemeral('A', 'partial', { node_id: 'iter:1:say', k, text });

describe('streamed output', () => {
  test('deltas are joined in order of their count', () => {
    expect(live(reduceEvents(EMPTY, [delta(1, 1, 'a'), delta(3, 2, 'bc')]))).toEqual(['abc']);
    expect(live(reduceEvents(EMPTY, [delta(1, 1, 'a'), delta(1, 1, 'a')]))).toEqual(['a']);
  });

  test('after a gap the next partial is awaited', () => {
    const holed = reduceEvents(EMPTY, [delta(1, 1, 'a'), delta(3, 1, 'c'), delta(4, 1, 'd')]);
    expect(Object.values(holed.live)[0]).toMatchObject({ text: 'a', hole: true });
    const healed = reduceEvents(holed, [partial(4, 'abcd'), delta(5, 1, 'e')]);
    expect(Object.values(healed.live)[0]).toMatchObject({ text: 'abcde', k: 5, hole: false });
  });

  test('output that starts with a gap is empty until the partial', () => {
    const late = reduceEvents(EMPTY, [delta(7, 1, 'x')]);
    expect(Object.values(late.live)[0]).toMatchObject({ text: '', hole: true });
    expect(live(reduceEvents(late, [partial(7, 'all of it')]))).toEqual(['all of it']);
  });

  test('output starts over when the connection to the model is lost', () => {
    const again = reduceEvents(EMPTY, [delta(1, 1, 'a'), partial(0, ''), delta(1, 1, 'b')]);
    expect(Object.values(again.live)[0]).toMatchObject({ text: 'b', k: 1, again: true });
  });

  test('dropped nodes wait for the next partial', () => {
    const told = markGaps(reduceEvents(EMPTY, [delta(1, 1, 'a')]), ['iter:1:say']);
    expect(live(reduceEvents(told, [delta(2, 1, 'b')]))).toEqual(['a']);
    expect(live(reduceEvents(told, [partial(2, 'ab')]))).toEqual(['ab']);
  });

  test('deltas after the end of their node are ignored', () => {
    const log = new Log();
    const rows = wholeRun(log, 'A');
    const summary = rows.findIndex((row) => row.event.event === 'workflow.node.output.summary');
    const state = reduceEvents(EMPTY, [...rows.slice(0, summary + 1), delta(4, 1, '!'), partial(4, '!')]);
    expect(state.live).toEqual({});
    const ended = reduceEvents(EMPTY, [...rows, ...deltas(log, 'A', 'iter:2:say', ['late'])]);
    expect(ended.live).toEqual({});
  });

  test('a restarted iteration streams its output again', () => {
    const log = new Log();
    const rows = wholeRun(log, 'A').slice(0, 7);
    const again = log.durable('A', 'workflow.node.started', { node_id: 'iter:1', kind: 'iteration' });
    expect(live(reduceEvents(EMPTY, [...rows, again, delta(1, 1, 'anew')]))).toEqual(['anew']);
  });
});

const subtask = (number: number) => ({ is_subtask: true, correlation_id: 'A', parent_run_id: 'A', subtask_index: number });

/** Two subtasks of a run, whose events alternate: one completes, one asks and is blocked. */
function twoSubtasks(): Row[] {
  const log = new Log();
  const dispatched = (number: number) =>
    log.durable('A', 'background.task.dispatched', {
      task_id: `task-S${number}`,
      call_id: 'c',
      number,
      total: 2,
      instruction: `do ${number}`,
      profile: 'default',
      role: number === 1 ? 'analyst' : '',
      depends_on: [],
    });
  const update = (number: number, payload: Parameters<typeof log.durable<'workflow.lifecycle.updated'>>[2]) =>
    log.durable(`S${number}`, 'workflow.lifecycle.updated', payload, subtask(number));
  const ended = (number: number, stop_reason: 'final_answer' | 'blocked') => {
    const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 };
    const payload = { final_answer: 'found', total_iterations: 1, stop_reason, duration_ms: 14_000, usage, artifacts: [], cost: 0.5 };
    return log.durable(`S${number}`, 'workflow.result.final', payload, subtask(number));
  };
  return [
    dispatched(1),
    dispatched(2),
    update(1, { status: 'running', phase: 'prepare' }),
    update(2, { status: 'running', phase: 'prepare' }),
    log.durable('S1', 'workflow.subflow.progress', { subtask_index: 1, total_subtasks: 2, completed: 0, tokens: 1, tool_calls: 1, preview: 'reading the page' }, subtask(1)),
    update(2, { status: 'waiting', phase: 'act', stop_reason: 'await_user_input' }),
    update(1, { status: 'completed', phase: 'end', stop_reason: 'final_answer' }),
    ended(1, 'final_answer'),
    ended(2, 'blocked'),
  ];
}

const lanes = (state: State) => state.thread.lines.filter((line) => line.kind === 'subtask');

test('each subtask is a lane of its outermost run, with what it does now', () => {
  const rows = twoSubtasks();
  const running = lanes(reduceEvents(EMPTY, rows.slice(0, 6)));
  expect(running).toMatchObject([
    { run: 'A', number: 1, role: 'analyst', preview: 'do 1', status: 'running', activity: 'reading the page' },
    { run: 'A', number: 2, role: '', status: 'waiting', reason: 'await_user_input' },
  ]);
  expect(lanes(reduceEvents(EMPTY, rows))).toMatchObject([
    { status: 'completed', duration: 14_000, cost: 0.5, activity: '', ownRun: 'S1' },
    { status: 'failed', reason: 'blocked' },
  ]);
});

test('lanes are the same however their events are batched', () => {
  const rows = twoSubtasks();
  const whole = reduceEvents(EMPTY, rows);
  fc.assert(
    fc.property(fc.array(fc.nat(rows.length), { maxLength: 5 }), (cuts) => {
      let state = EMPTY;
      let from = 0;
      for (const cut of [...cuts.toSorted((a, b) => a - b), rows.length]) {
        state = reduceEvents(state, rows.slice(from, cut));
        from = cut;
      }
      expect(state).toEqual(whole);
    }),
  );
});

test('a subtask is one line with its own thread', () => {
  const log = new Log();
  const sub = { is_subtask: true };
  const started = log.durable(
    'S',
    'workflow.tool.started',
    { call_id: 'c', tool_name: 'read_file', arguments: {}, iteration: 1, risk: 'read', attachments: [] },
    sub,
  );
  const done = log.durable(
    'S',
    'workflow.tool.completed',
    { call_id: 'c', tool_name: 'read_file', duration_ms: 1, result: '', attachments: [], metadata: { configuration: ['AGENTS.md'], logged: ['full'] } },
    sub,
  );
  const state = reduceEvents(EMPTY, [started, done]);
  expect(lines(state)).toEqual(['subtask']);
  const [lane] = state.thread.lines;
  expect(lane).toMatchObject({ kind: 'subtask', status: 'queued' });
  expect(lane?.kind === 'subtask' && lane.thread.lines).toMatchObject([{ status: 'done', configuration: ['AGENTS.md'], logged: ['full'] }]);
});

test('thousands of events are reduced one by one without delay', () => {
  const log = new Log();
  let state = EMPTY;
  for (let run = 0; run < 900; run += 1) {
    for (const row of wholeRun(log, `R${run}`)) state = reduceEvent(state, row);
  }
  expect(state.runs).toHaveLength(900);
  expect(state.thread.lines).toHaveLength(4500);
});

test('a wait for the model is shown until the reply goes on or ends', () => {
  const log = new Log();
  const retry = { node_id: 'iter:1:say', reason: 'overloaded', seconds: 8, attempt: 3 } as const;
  const waiting = reduceEvent(EMPTY, log.durable('a', 'workflow.node.retry', retry));
  expect(Object.values(waiting.live).map((node) => node.retry)).toMatchObject([retry]);
  const thought = { node_id: 'iter:1:think', k: 1, n: 1, text: 'Hm' };
  const thinks = reduceEvent(waiting, log.ephemeral('a', 'workflow.node.output.delta', thought));
  expect(live(thinks)).toEqual(['Hm']);
  const failed = log.durable('a', 'workflow.node.failed', {
    node_id: 'iter:1:say',
    kind: 'generation',
    phase: 'think',
    error: 'no',
    recoverable: false,
  });
  expect(reduceEvent(waiting, failed).live).toEqual({});
});

function callRow(result: object) {
  const log = new Log();
  const call = { call_id: 'c', tool_name: 'shell', duration_ms: 1, attachments: [], metadata: {}, ...result };
  return reduceEvents(EMPTY, [log.durable('a', 'workflow.tool.completed', call)]).thread.lines[0];
}

describe('the rows of calls', () => {
  test('a command that ended with an error or at its limit has failed', () => {
    expect(callRow({ metadata: { exit_code: 0, timed_out: false } })).toMatchObject({ status: 'done' });
    expect(callRow({ metadata: { exit_code: 3, timed_out: false } })).toMatchObject({ status: 'failed', exit: 3 });
    expect(callRow({ metadata: { exit_code: -9, timed_out: true } })).toMatchObject({ status: 'failed', timedOut: true });
  });

  test('a refused call keeps what it was', () => {
    const refused = callRow({ error: 'no', metadata: { denied: true, what: 'rm x', rules: [] } });
    expect(refused).toMatchObject({ status: 'denied', denied: 'rm x' });
  });

  test('refused calls keep their file and their place among the calls of their reply', () => {
    const log = new Log();
    const reply = {
      node_id: 'iter:1:say',
      iteration: 1,
      content: '',
      tool_call_count: 3,
      llm_duration_ms: 1,
      llm_request_id: '',
      llm_model: 'm',
      usage: {},
      call_ids: ['a', 'b', 'c'],
    };
    const ended = (call_id: string, metadata: Record<string, unknown>) =>
      log.durable('A', 'workflow.tool.completed', { call_id, tool_name: 'write_file', duration_ms: 1, attachments: [], metadata });
    const rows = [
      log.durable('A', 'workflow.node.output.summary', reply),
      ended('c', {}),
      ended('b', { denied: true, what: 'write_file\npath: b.txt', subject: 'b.txt', rules: [] }),
      ended('a', { not_run: 'plan', what: 'write_file\npath: a.txt', subject: 'a.txt' }),
    ];
    const [first, second, third] = reduceEvents(EMPTY, rows).thread.lines;
    expect(first).toMatchObject({ kind: 'not-run', subject: 'a.txt' });
    expect(second).toMatchObject({ kind: 'tool', status: 'denied', subject: 'b.txt' });
    expect(third).toMatchObject({ kind: 'tool', status: 'done' });
  });

  test('an edit has its diff', () => {
    expect(callRow({ metadata: { diff: '-a\n+b\n' } })).toMatchObject({ status: 'done', diff: '-a\n+b\n' });
  });
});

const tokens = (count: number) => ({ input_tokens: count, output_tokens: 1 });

test('a run has the totals of its own end and of the ends of subtasks that outlast it', () => {
  const log = new Log();
  const end = { final_answer: '', stop_reason: 'final_answer', total_iterations: 1, duration_ms: 9 } as const;
  const below = { is_subtask: true, correlation_id: 'A' };
  const said = { node_id: 'iter:1:say', iteration: 1, content: '', tool_call_count: 0, llm_duration_ms: 1, llm_request_id: '', llm_model: '', usage: tokens(7) };
  const begin = log.durable('A', 'workflow.lifecycle.updated', { status: 'running', phase: 'prepare' });
  const reply = log.durable('S', 'workflow.node.output.summary', said, below);
  const working = reduceEvents(EMPTY, [begin, reply]);
  expect(working.runs[0]?.usage).toMatchObject({ in: 7, out: 1 });
  const first = log.durable('A', 'workflow.result.final', { ...end, usage: tokens(10), cost: 0.5 });
  const ended = reduceEvents(working, [first]);
  expect(ended.runs[0]).toMatchObject({ usage: { in: 10, out: 1 }, cost: 0.5, duration: 9 });
  const above = [{ run_id: 'A', usage: tokens(30), cost: 0.75 }];
  const later = log.durable('S', 'workflow.result.cancelled', { reason: '', requested_by: '', requested_via: '', usage: tokens(20), above }, below);
  const over = reduceEvents(ended, [later]);
  expect(over.runs).toHaveLength(1);
  expect(over.runs[0]).toMatchObject({ usage: { in: 30, out: 1 }, cost: 0.75, duration: 9 });
});
