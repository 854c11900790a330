import { expect, test } from 'vitest';
import { formatUntil } from '../../src/lib/relative_time';

test('the time until a moment is given in its largest unit', () => {
  const now = Date.parse('2026-01-31T08:00:00Z');
  const until = (time: string, language: 'en' | 'zh' = 'en') => formatUntil(time, now, language);
  expect(until('2026-02-07T08:00:00Z')).toBe('in 7 days');
  expect(until('2026-02-01T08:00:00Z')).toBe('in 24 hours');
  expect(until('2026-01-31T08:10:00Z')).toBe('in 10 minutes');
  expect(until('2026-01-31T08:00:20Z')).toBe('in 1 minute');
  expect(until('2026-01-31T08:10:00Z', 'zh')).toBe('10分钟后');
});
