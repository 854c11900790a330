import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseBlocks, IncrementalBlocks, render, type Block } from '../../src/lib/markdown';
import rows from '../../../tests/support/cjk_emphasis.json';

const html = (text: string) => parseBlocks(text).map(render).join('');

describe('hostile markdown', () => {
  test.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '<svg onload=alert(1)><script>alert(1)</script></svg>',
    '<svg><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>',
    '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>',
    '<iframe src="https://example.com"></iframe>',
    '<object data="https://example.com"></object><embed src="https://example.com">',
    '<style>body{background:url(https://example.com)}</style>',
    '<p style="background:url(https://example.com)">x</p>',
    '<link rel=stylesheet href=https://example.com>',
    '<form action=https://example.com><input name=a><button>go</button></form>',
    '<video src=https://example.com></video><audio src=https://example.com></audio>',
    '<base href=https://example.com><meta http-equiv=refresh content="0;url=https://example.com">',
    '<a href="javascript:alert(1)" onclick="alert(1)">x</a>',
    '[x](javascript:alert(1))',
    '[x](data:text/html,<script>alert(1)</script>)',
    '[x](vbscript:x)',
    '![x](https://example.com/a.png)',
    '![x](data:image/svg+xml,<svg onload=alert(1)>)',
    '![" onerror="alert(1)](x" onerror="alert(1))',
    '<div id=root><a id=message name=getElementById>x</a></div>',
    '<template><img src=x onerror=alert(1)></template>',
    '<picture><source srcset=https://example.com><img srcset=https://example.com></picture>',
    '```"><img src=x onerror=alert(1)>\nx\n```',
    '<img src="/api/logout">',
    '\ud800<img src=x onerror=alert(1)>\udc00 [x](javascript:\ud800) [y](https://\ud800)',
  ])('does nothing and fetches nothing: %s', (text) => {
    const box = document.createElement('div');
    box.innerHTML = html(text);
    const risky =
      'script,img,svg,math,iframe,object,embed,style,link,form,input,button,video,audio,base,meta,template,source,[id],[name],[src],[srcset],[style]';
    expect(box.querySelector(risky)).toBeNull();
    for (const element of box.querySelectorAll('*')) {
      for (const { name, value } of element.attributes) {
        expect(name).not.toMatch(/^on/);
        expect(value).not.toMatch(/^\s*(javascript|data|vbscript):/i);
      }
    }
  });

  test('links do not reveal this page, and images are links', () => {
    const box = document.createElement('div');
    box.innerHTML = html('[a](https://example.com/x) ![b](https://example.com/y.png)');
    const [link, picture] = box.querySelectorAll('a');
    for (const one of [link, picture]) {
      expect(one?.getAttribute('rel')).toBe('noopener noreferrer nofollow');
      expect(one?.getAttribute('target')).toBe('_blank');
    }
    expect(picture?.dataset['image']).toBe('1');
    expect(picture?.textContent).toBe('b (example.com)');
  });
});

/** Return the text and the target of each link. */
function links(text: string): string[] {
  const box = document.createElement('div');
  box.innerHTML = html(text);
  return [...box.querySelectorAll('a')].map((one) => `${one.textContent} <${one.href}>`);
}

describe('links name their target', () => {
  test.each([
    ['https://good.example/x', 'https://good.example/x <https://good.example/x>'],
    ['<https://good.example>', 'https://good.example <https://good.example/>'],
    ['[Good.Example/a](https://good.example/b)', 'Good.Example/a <https://good.example/b>'],
    ['a@good.example', 'a@good.example <mailto:a@good.example>'],
    ['![](https://good.example/a.png)', 'https://good.example/a.png <https://good.example/a.png>'],
  ])('that names it already is unchanged: %s', (text, expected) => {
    expect(links(text)).toEqual([expected]);
  });

  test.each([
    ['[the report](https://evil.example/x)', 'the report (evil.example)'],
    ['[https://good.example](https://evil.example/x)', 'https://good.example (evil.example)'],
    ['[good.example](https://evil.example:8443/x)', 'good.example (evil.example:8443)'],
    ['[evil.example](https://evil.example.org)', 'evil.example (evil.example.org)'],
    ['[](https://evil.example)', ' (evil.example)'],
    ['[\u200b\u2060](https://evil.example)', '\u200b\u2060 (evil.example)'],
    ['[&nbsp;](https://evil.example)', '\u00a0 (evil.example)'],
    ['https://good.example@evil.example/', 'https://good.example@evil.example/ (evil.example)'],
    ['<https://good.example:x@evil.example/>', 'https://good.example:x@evil.example/ (evil.example)'],
    ['<https://аррӏе.com/>', 'https://аррӏе.com/ (xn--80ak6aa92e.com)'],
    ['[evil.example/\u202emoc.doog](https://evil.example)', 'evil.example/\u202emoc.doog (evil.example)'],
    ['[evil.example\u2044@good.example](https://evil.example)', 'evil.example\u2044@good.example (evil.example)'],
    ['[a@good.example](mailto:b@evil.example)', 'a@good.example (b@evil.example)'],
    ['[good.example][1]\n\n[1]: https://evil.example', 'good.example (evil.example)'],
    ['| [good.example](http:evil.example) |\n|-|', 'good.example (evil.example)'],
    ['- > **[good.example](https://evil.example)**', 'good.example (evil.example)'],
    ['![good.example](https://evil.example/a.png)', 'good.example (evil.example)'],
    ['[x](https://evil.example "https://good.example")', 'x (evil.example)'],
    [`[x](https://good.example.${'a.'.repeat(90)}evil.example)`, `x (good.example.${'a.'.repeat(90)}evil.example)`],
  ])('the host is shown after another text: %s', (text, expected) => {
    expect(links(text).map((one) => one.replace(/ <.*/, ''))).toEqual([expected]);
  });

  test('an image in a link hides neither target', () => {
    expect(links('[![good.example](https://a.example/x.png)](https://evil.example)')).toEqual([
      ' (evil.example) <https://evil.example/>',
      'good.example (a.example) <https://a.example/x.png>',
    ]);
  });

  test.each([
    ['[x](javascript:alert(1))', 'x (javascript:alert(1))'],
    ['[x](JaVaScRiPt&colon;alert(1))', 'x (JaVaScRiPt:alert(1))'],
    ['[x](vbscript:x)', 'x (vbscript:x)'],
    ['[x](file:///etc/passwd)', 'x (file:///etc/passwd)'],
    ['[x](//evil.example/a)', 'x (//evil.example/a)'],
    ['[x](/api/logout)', 'x (/api/logout)'],
    ['[the chart](charts/a.png)', 'the chart (charts/a.png)'],
    ['[x](#message)', 'x (#message)'],
    ['[x](https://)', 'x (https://)'],
    ['[x](https:\\\\\\\\evil.example)', 'x (https:\\\\evil.example)'],
    ['[报告](报告.md)', '报告 (报告.md)'],
    ['[报告.md](报告.md)', '报告.md'],
    [`[x](data:text/html,${'a'.repeat(200)})`, `x (data:text/html,${'a'.repeat(85)}…)`],
    ['![x](blob:https://evil.example/1)', 'x (blob:https://evil.example/1)'],
  ])('an address that is not on the web is text: %s', (text, expected) => {
    const box = document.createElement('div');
    box.innerHTML = html(text);
    expect(box.textContent?.trim()).toBe(expected);
    expect(box.querySelector('[href]')).toBeNull();
  });

  test('no link leads to the site of the page by its base', () => {
    for (const address of ['http:/api/logout', 'http:api', 'http:///api']) {
      const [link] = links(`[x](<${address}>)`);
      expect(link).toMatch(/^x \(api\) <http:\/\/api\//);
    }
  });
});

test('lists keep their start and tables their alignment', () => {
  expect(html('3. a')).toContain('<ol start="3">');
  expect(html('|a|\n|-:|\n|b|')).toContain('align="right"');
  expect(html('- [x] done')).toContain('☑');
});

describe('nested or repeated marks', () => {
  const lists = Array.from({ length: 400 }, (_, depth) => `${'  '.repeat(depth)}- item`);
  test.each([
    ['quotes', `${'> '.repeat(2_000)}deep`],
    ['quotes without blanks', `${'>'.repeat(2_000)}deep`],
    ['lists on one line', `${'- '.repeat(2_000)}deep`],
    ['numbered lists on one line', `${'1. '.repeat(2_000)}deep`],
    ['quotes and lists', `${'> - '.repeat(1_000)}deep`],
    ['lists on lines', [...lists, `${'  '.repeat(400)}- deep`].join('\n')],
    ['brackets', `${'['.repeat(10_000)}deep`],
    ['stars', `${'*'.repeat(10_000)}deep`],
    ['emphasis', `${'*a **b '.repeat(2_000)}deep`],
    ['emphasis beside Chinese signs', `${'**重点：**请'.repeat(1_000)}deep`],
    ['stars beside Chinese signs', `${'：'.repeat(5_000)}${'*'.repeat(5_000)}：deep`],
    ['columns', `|${'a|'.repeat(1_000)}\n|${'-|'.repeat(1_000)}\n|${'b|'.repeat(999)}deep|`],
  ])('%s are shown with the text inside', (_, text) => {
    const box = document.createElement('div');
    box.innerHTML = html(text);
    expect(box.textContent).toContain('deep');
    for (const name of ['blockquote', 'ul', 'ol']) {
      expect(box.querySelector(Array(17).fill(name).join(' '))).toBeNull();
    }
  });

  test('16 levels are kept', () => {
    const box = document.createElement('div');
    box.innerHTML = html(`${'> '.repeat(16)}deep`);
    expect(box.querySelector(Array(16).fill('blockquote').join(' '))?.textContent).toContain('deep');
  });
});

/** Return the blocks as HTML of a line, without the attributes and targets of links. */
function line(blocks: Block[]): string {
  const whole = blocks.map(render).join('').replace(/<p>|<\/p>\s*|<bdi>.*?<\/bdi>| (target|rel)="[^"]*"/g, '');
  return whole.replace(/(<\/?)del>/g, '$1s>').replace(/\/"/g, '"');
}

describe('emphasis beside Chinese, Japanese and Korean signs', () => {
  test.each(rows as [string, string][])('%s', (text, expected) => {
    expect(line(parseBlocks(text))).toBe(expected);
    const growing = new IncrementalBlocks();
    for (let end = 0; end <= text.length; end++) growing.blocks(text.slice(0, end));
    expect(line(growing.blocks(text))).toBe(expected);
  });
});

test('a growing text is split like the whole text', () => {
  const text = 'one\n\n- a\n- b\n\n```py\nx = 1\n\ny\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> q\n\nend';
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: text.length })), (cuts) => {
      const growing = new IncrementalBlocks();
      for (const cut of cuts.toSorted((a, b) => a - b)) growing.blocks(text.slice(0, cut));
      expect(growing.blocks(text).map(render)).toEqual(parseBlocks(text).map(render));
    }),
  );
});

test('a text that starts over is split again', () => {
  const growing = new IncrementalBlocks();
  growing.blocks('first\n\nsecond');
  expect(growing.blocks('other').map(render)).toEqual(parseBlocks('other').map(render));
});
