import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { formatCost, formatCount, formatDuration } from '../../src/lib/format';

type Rows = [number, string][];

const path = join(import.meta.dirname, '../../../tests/support/quantities.json');
const table = JSON.parse(readFileSync(path, 'utf8')) as { durations: Rows; counts: Rows; costs: Rows };

test.each(table.durations)('%f seconds are %s', (seconds, text) => {
  expect(formatDuration(seconds * 1000)).toBe(text);
});

test.each(table.counts)('the number %i is %s', (count, text) => {
  expect(formatCount(count)).toBe(text);
});

test.each(table.costs)('%f dollars are %s', (dollars, text) => {
  expect(formatCost(dollars)).toBe(text);
});
