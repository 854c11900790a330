import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseTable } from '../../src/lib/csv';

const quote = (cell: string) => `"${cell.replaceAll('"', '""')}"`;

describe('parsing a table', () => {
  test('quoted cells of any text come back, with every separator and line end', () => {
    const cell = fc.string({ unit: fc.constantFrom('a', '"', ',', ';', '\t', '\n', '\r', '文', ' ') });
    const rows = fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(rows, fc.constantFrom(',', ';', '\t'), fc.constantFrom('\n', '\r\n', '\r'), (cells, separator, end) => {
        const text = cells.map((row) => row.map(quote).join(separator)).join(end);
        // the separator is taken from the first line, which quoted line ends cut
        fc.pre(!/[\r\n]/.test((cells[0] ?? []).join('')));
        expect(parseTable(text, 100)).toEqual({ rows: cells, more: false });
      }),
    );
  });

  test.each([
    ['', []],
    ['\uFEFFa,b\n', [['a', 'b']]],
    ['a,b\r\n1,2\r\n', [['a', 'b'], ['1', '2']]],
    ['a;b\n"1;2";3', [['a', 'b'], ['1;2', '3']]],
    ['a,b,\n', [['a', 'b', '']]],
    ['a,', [['a', '']]],
    ['\n\na', [[''], [''], ['a']]],
    ['say "hi",2', [['say "hi"', '2']]],
    ['"never closed, \n', [['never closed, \n']]],
    ['"a"b,c', [['ab', 'c']]],
  ])('%j', (text, rows) => {
    expect(parseTable(text, 100).rows).toEqual(rows);
  });

  test('any text ends, and every row of it is counted', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('"', ',', '\n', '\r', 'x') }), fc.nat(4), (text, most) => {
        const whole = parseTable(text, 1_000).rows;
        const part = parseTable(text, most);
        expect(part).toEqual({ rows: whole.slice(0, most), more: whole.length > most });
      }),
    );
  });
});
