import { expect, test } from 'vitest';
import { eventParser, type ServerEvent } from '../../src/stream/event_parser';

/** Return the events of a stream that arrives in these pieces of bytes. */
function parse(...pieces: Uint8Array[]): ServerEvent[] {
  const events: ServerEvent[] = [];
  const decoder = new TextDecoder();
  const take = eventParser((event) => events.push(event));
  for (const piece of pieces) take(decoder.decode(piece, { stream: true }));
  take(decoder.decode());
  return events;
}

const bytes = (text: string) => new TextEncoder().encode(text);
const event = (data: string, name = 'message', id = ''): ServerEvent => ({ name, data, id });

const STREAMS: Record<string, [string, ServerEvent[]]> = {
  'an event': ['event: hb\ndata: {}\n\n', [event('{}', 'hb')]],
  'an id that later events repeat': [
    'id: a-1\ndata: 1\n\ndata: 2\n\nid\ndata: 3\n\n',
    [event('1', 'message', 'a-1'), event('2', 'message', 'a-1'), event('3')],
  ],
  'an id without an event': ['id: a-1\n\ndata: 1\n\n', [event('1', 'message', 'a-1')]],
  'an id with a NUL': ['id: a-1\nid: a\0b\ndata: 1\n\n', [event('1', 'message', 'a-1')]],
  'several lines of data': ['data: a\ndata\ndata:b\n\n', [event('a\n\nb')]],
  'empty data': ['data\n\ndata:\n\n', [event(''), event('')]],
  'a name without data': ['event: x\n\ndata: 1\n\n', [event('1')]],
  comments: [': hello\n:\n\ndata: 1\n: more\n\n', [event('1')]],
  'unknown fields': ['retry: 2000\nretry: x\n\nfoo: bar\nDATA: no\n data: no\ndata: 1\n\n', [event('1')]],
  'one space is removed': ['data:  a: b \n\n', [event(' a: b ')]],
  'carriage returns': ['data: 1\r\rdata: 2\r\r', [event('1'), event('2')]],
  'both line ends': ['data: 1\r\n\r\ndata: 2\r\n\r\n', [event('1'), event('2')]],
  'mixed line ends': ['data: a\rdata: b\ndata: c\r\n\r\n\ndata: d\n\r', [event('a\nb\nc'), event('d')]],
  'a byte order mark': ['\ufeffdata: 1\n\n', [event('1')]],
  'text of all lengths in UTF-8': ['data: é界😀\u2028\u0085x\n\n', [event('é界😀\u2028\u0085x')]],
  'an unfinished event': ['data: 1\n\ndata: 2\n', [event('1')]],
};

for (const [name, [text, events]] of Object.entries(STREAMS)) {
  test(`${name}, split at every byte`, () => {
    const all = bytes(text);
    expect(parse(all)).toEqual(events);
    expect(parse(...Array.from(all, (byte) => Uint8Array.of(byte)))).toEqual(events);
    for (let at = 0; at <= all.length; at += 1) {
      expect(parse(all.slice(0, at), all.slice(at)), `split at ${at}`).toEqual(events);
    }
  });
}

test('a line that ends with a carriage return is complete at once', () => {
  const events: ServerEvent[] = [];
  const take = eventParser((one) => events.push(one));
  take('data: 1\r\r');
  expect(events).toEqual([event('1')]);
  take('');
  take('\ndata: 2\n\n');
  expect(events).toEqual([event('1'), event('2')]);
});

test('bytes that are not UTF-8 become replacement characters', () => {
  expect(parse(Uint8Array.of(...bytes('data: a'), 0xff, ...bytes('b\n\n')))).toEqual([event('a\ufffdb')]);
});
