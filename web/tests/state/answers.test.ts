import { describe, expect, test } from 'vitest';
import { approval, nonBlankLines, offeredRules } from '../../src/state/answers';
import type { ApprovalItem } from '../../src/stream/events';

function call(name: string, rules: string[] = []): ApprovalItem {
  return { call_id: name, tool: 'shell', what: `run ${name}`, risk: 'exec', reason: '', call_hash: '', rules };
}

describe('an answer to an approval', () => {
  const calls = [call('one', ['shell(one)']), call('two', ['shell(two)', 'shell(one)']), call('three')];

  test('lists the calls only if one is excluded', () => {
    expect(approval(calls, new Set())).toEqual({ decision: 'approve' });
    expect(approval(calls, new Set(['two']), 'session')).toEqual({
      decision: 'approve',
      grant: 'session',
      items: { one: true, two: false, three: true },
    });
    expect(approval([call('one')], new Set(), 'rule', ['shell(one *)'])).toEqual({
      decision: 'approve',
      grant: 'rule',
      rules: ['shell(one *)'],
    });
  });

  test('offers rules only if every included call has one', () => {
    expect(offeredRules(calls, new Set())).toBeNull();
    expect(offeredRules(calls, new Set(['three']))).toEqual(['shell(one)', 'shell(two)']);
    expect(offeredRules(calls, new Set(['one', 'two', 'three']))).toBeNull();
  });

  test('rules are written one per line', () => {
    expect(nonBlankLines(' shell(a) \n\n shell(b)')).toEqual(['shell(a)', 'shell(b)']);
  });
});
