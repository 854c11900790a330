import { expect, test } from 'vitest';
import { htmlDocument } from '../../src/lib/sandbox_document';

const shown = (html: string) => new DOMParser().parseFromString(htmlDocument(html), 'text/html');

test('what is shown stays, with its styles and pictures', () => {
  const kept =
    '<style>p { color: red }</style><h1 style="color: blue" class="a">Report</h1><p>text</p><a href="#b">b</a>' +
    '<img src="data:image/png;base64,AAAA" alt="x"><svg viewBox="0 0 9 9"><path d="M0 0" style="fill: red"></path></svg>' +
    '<table><tbody><tr><td colspan="2">1</td></tr></tbody></table>';
  expect(shown(`<html><head><title>t</title></head><body>${kept}</body></html>`).body.innerHTML).toBe(kept);
  expect(shown(`<head>${kept}`).querySelector('style')?.textContent).toContain('color: red');
});

test.each([
  '<link rel="preconnect" href="http://x.example">',
  '<link rel=dns-prefetch href="//x.example"><link rel=stylesheet href=http://x.example/a.css>',
  '<meta http-equiv=refresh content="0;url=http://x.example"><base href="http://x.example">',
  '<iframe src="http://x.example"></iframe><iframe srcdoc="<link rel=preconnect href=http://x.example>"></iframe>',
  '<object data="http://x.example"></object><embed src="http://x.example"><frameset><frame src="http://x.example"></frameset>',
  '<a href="http://x.example" ping="http://x.example">a</a><area href="//x.example">',
  '<img src="http://x.example/a" srcset="data:image/png,1 1x, http://x.example/b 2x"><video poster=http://x.example src=//x.example></video>',
  '<table background="http://x.example"><tr><td background=" http://x.example">1</table><blockquote cite="http://x.example">q</blockquote>',
  '<form action="http://x.example"><button formaction="http://x.example">b</button></form>',
  '<svg><image href="http://x.example"/><use xlink:href="http://x.example#a"/><a xlink:href="http://x.example"><text>t</text></a></svg>',
  '<template><link rel=preconnect href=http://x.example><img src=http://x.example></template>',
  '<script>fetch("http://x.example")</script><p onclick="open(\'http://x.example\')">p</p>',
  '<noscript><link rel=preconnect href="http://x.example"></noscript>',
])('no address of another host stays: %s', (html) => {
  expect(htmlDocument(`<p>kept</p>${html}`)).toContain('kept');
  expect(htmlDocument(`<p>kept</p>${html}`)).not.toContain('x.example');
});
