/** Parsing of tables as text: RFC 4180 with commas, semicolons or tabs. */

export interface Table {
  rows: string[][];
  /** There are more rows than were asked for. */
  more: boolean;
}

/** Return the first rows of a table. Text that does not follow the rules is kept, never rejected. */
export function parseTable(text: string, maxRows: number): Table {
  const start = text.startsWith('\uFEFF') ? 1 : 0;
  const separator = separatorOf(text, start);
  const special = new RegExp(`["\\r\\n${separator}]`, 'g');
  const rows: string[][] = [];
  let row: string[] = [];
  let at = start;
  while (at < text.length) {
    let field = '';
    if (text[at] === '"') [field, at] = quoted(text, at + 1);
    // an unquoted field, or what follows the closing quote
    special.lastIndex = at;
    let end = special.exec(text);
    while (end?.[0] === '"') end = special.exec(text);
    const stop = end?.index ?? text.length;
    row.push(field + text.slice(at, stop));
    at = stop + 1;
    if (text[stop] === separator) {
      if (at === text.length) row.push('');
      continue;
    }
    if (text[stop] === '\r' && text[at] === '\n') at += 1;
    if (rows.length === maxRows) return { rows, more: true };
    rows.push(row);
    row = [];
  }
  if (row.length === 0) return { rows, more: false };
  if (rows.length === maxRows) return { rows, more: true };
  return { rows: [...rows, row], more: false };
}

/** Return a quoted field and the position after its closing quote. */
function quoted(text: string, from: number): [string, number] {
  let field = '';
  let at = from;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return [field + text.slice(at), text.length];
    field += text.slice(at, quote);
    if (text[quote + 1] !== '"') return [field, quote + 1];
    field += '"';
    at = quote + 2;
  }
}

/** Return the separator that is most frequent in the first line. */
function separatorOf(text: string, start: number): string {
  const line = /[^\r\n]*/.exec(text.slice(start, start + 10_000))?.[0].replace(/"[^"]*"/g, '') ?? '';
  const counts = [',', ';', '\t'].map((one) => ({ one, count: line.split(one).length }));
  return counts.reduce((best, next) => (next.count > best.count ? next : best)).one;
}
