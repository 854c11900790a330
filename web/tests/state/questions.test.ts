import { describe, expect, test } from 'vitest';
import { answererName, answerLabel, questionTitle, reduceQuestions, summaryOf } from '../../src/state/questions';
import type { ApprovalItem } from '../../src/stream/events';
import { activeRun, reduceEvents } from '../../src/state/event_reducer';
import { EMPTY, type Row } from '../../src/state/session_state';
import { en as t } from '../../src/i18n/en';
import { RUN_TEXTS } from '../../src/i18n/run_texts';
import { zh } from '../../src/i18n/zh';
import { answered, Log, question } from '../envelopes';

function call(name: string, rules: string[] = []): ApprovalItem {
  return { call_id: name, tool: 'shell', what: `run ${name}`, risk: 'exec', reason: '', call_hash: '', rules };
}

function waits(log: Log, run: string, id: string): Row[] {
  return [
    log.durable(run, 'workflow.question.asked', question(id)),
    log.durable(run, 'workflow.lifecycle.updated', {
      status: 'waiting',
      phase: 'execute',
      stop_reason: 'await_user_input',
    }),
  ];
}

function how(kind: 'plan' | 'clarify' | 'approval', more: object): string {
  return answerLabel(kind, answered('q', { text: '', ...more }), t);
}

describe('reducing events to questions', () => {
  test('a question is open until it is answered, and its run waits', () => {
    const log = new Log();
    const state = reduceEvents(EMPTY, waits(log, 'A', 'q'));
    expect(state.questions).toMatchObject([{ id: 'q', run: 'A', session: 'session-1', closed: null }]);
    expect(activeRun(state)?.status).toBe('waiting');
    const after = reduceEvents(state, [log.durable('A', 'workflow.question.answered', answered('q'))]);
    expect(after.questions[0]?.closed?.answer).toMatchObject({ answered_name: 'Bo', text: 'this' });
    expect(state.questions[0]?.closed).toBeNull();
  });

  test('the first question and the first answer of an ID are kept', () => {
    const log = new Log();
    const rows = [
      ...waits(log, 'A', 'q'),
      log.durable('A', 'workflow.question.answered', answered('q')),
      log.durable('A', 'workflow.question.answered', answered('q', { text: 'that' })),
      ...waits(log, 'A', 'q'),
    ];
    const { questions } = reduceEvents(EMPTY, rows);
    expect(questions).toHaveLength(1);
    expect(questions[0]?.closed?.answer?.text).toBe('this');
  });

  test('the end of a run closes only its own questions', () => {
    const log = new Log();
    const both = [...waits(log, 'A', 'a'), ...waits(log, 'B', 'b')];
    const ends = log.durable('A', 'workflow.result.cancelled', {
      reason: 'stopped',
      requested_by: 'local',
      requested_via: 'web',
    });
    const { questions } = reduceEvents(EMPTY, [...both, ends]);
    expect(questions.map((one) => [one.id, one.closed?.answer])).toEqual([['a', null], ['b', undefined]]);
  });

  test('unrelated events return the same object', () => {
    const log = new Log();
    const { questions } = reduceEvents(EMPTY, waits(log, 'A', 'a'));
    const [row] = waits(log, 'A', 'a');
    if (row === undefined) throw new Error('a row');
    expect(reduceQuestions(questions, row.event)).toBe(questions);
  });
});

describe('the texts of a question', () => {
  test('the label of an answer names the decision and its reason', () => {
    expect(how('approval', { decision: 'approve' })).toBe('allowed once');
    expect(how('approval', { decision: 'approve', grant: 'rule' })).toBe('allowed with a rule');
    expect(how('approval', { decision: 'approve', items: { a: true, b: false } })).toBe('allowed 1 of 2');
    expect(how('approval', { decision: 'reject', text: 'too late' })).toBe('denied: too late');
    expect(how('approval', { decision: 'expired' })).toBe('expired, not run');
    expect(how('plan', { decision: 'edit' })).toBe('edited');
    expect(how('plan', { decision: 'text', text: 'shorter' })).toBe('changes requested: shorter');
    expect(how('clarify', { decision: 'text', text: 'red' })).toBe('red');
    expect(how('clarify', { decision: 'reject' })).toBe('declined');
    expect(how('clarify', { decision: 'approve' })).toBe('yes, continue');
  });

  test('the answerer is named, or else identified', () => {
    expect(answererName(answered('q'), t)).toBe('Bo');
    expect(answererName(answered('q', { answered_name: '' }), t)).toBe('lark:ou_bo');
    expect(answererName(answered('q', { answered_by: 'local', answered_name: 'local owner' }), t)).toBe('you');
  });

  test('titles are translated, the text of the model is not', () => {
    const given = { title: 'Which one?', calls: [call('one')], reasonCode: '', asker: null };
    expect(questionTitle({ kind: 'approval', ...given }, t, null)).toBe('Allow shell?');
    expect(questionTitle({ kind: 'approval', ...given, calls: [call('one'), call('two')] }, zh, null)).toBe('使用 2 个其他工具？');
    expect(questionTitle({ kind: 'clarify', ...given, calls: [] }, zh, null)).toBe('Which one?');
    const asker = { number: 2, role: 'analyst', path: 'task 2 · analyst' };
    const asked = { kind: 'clarify', ...given, calls: [], asker } as const;
    expect(questionTitle(asked, t, null)).toBe('task 2 · analyst: Which one?');
    expect(questionTitle(asked, zh, null)).toBe('任务 2 · analyst: Which one?');
    const earlier = { ...asked, asker: { ...asker, number: 0, role: '' } };
    expect(questionTitle(earlier, zh, null)).toBe('task 2 · analyst: Which one?');
    const recovery = { kind: 'recovery', ...given, calls: [], reasonCode: 'model_busy' } as const;
    expect(questionTitle(recovery, zh, RUN_TEXTS.zh)).toBe('模型服务繁忙，请过几分钟重试。');
    expect(summaryOf({ body: '', plan: null, calls: [call('one\n\ntwo')] })).toBe('run one two');
    const created = { ...call('write_file'), subject: 'notes.md' };
    expect(summaryOf({ body: '', plan: null, calls: [created] })).toBe('');
    expect(summaryOf({ body: '', plan: null, calls: [created, call('b')] })).toBe('notes.md · run b');
  });
});
