import { expect, test } from 'vitest';
import { displayName, extensionOf } from '../../src/lib/file_name';
import { previewKind } from '../../src/lib/file_kind';

test.each([
  ['report.pdf', 'report.pdf'],
  ['报告 2.pdf', '报告 2.pdf'],
  ['gnp\u202efdp.exe', 'gnp\\u202efdp.exe'],
  ['a\nb\u0000\u200b', 'a\\u000ab\\u0000\\u200b'],
  ['<img src=x>.png', '<img src=x>.png'],
])('%j is shown as %j', (name, shown) => {
  expect(displayName(name)).toBe(shown);
});

test.each([
  ['a.PDF', 'pdf'],
  ['a.tar.gz', 'gz'],
  ['.gitignore', ''],
  ['folder.d/file', ''],
  ['Makefile', ''],
])('the extension of %j is %j', (name, extension) => {
  expect(extensionOf(name)).toBe(extension);
});

test.each([
  ['a.png', 'image/png', 'image'],
  ['a.svg', 'image/svg+xml', 'svg'],
  ['a.svg', 'application/octet-stream', 'svg'],
  // the media type decides: a page is not shown as a picture
  ['a.png', 'text/html', 'html'],
  ['a.tiff', 'image/tiff', 'none'],
  ['a.md', 'text/plain', 'markdown'],
  ['a.csv', '', 'table'],
  ['a.py', 'text/x-python', 'text'],
  ['a.log', 'application/octet-stream', 'text'],
  ['a.zip', 'application/zip', 'none'],
  ['a.pdf', 'application/pdf', 'pdf'],
] as const)('%j of type %j is previewed as %s', (name, type, kind) => {
  expect(previewKind(name, type)).toBe(kind);
});
