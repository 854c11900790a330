import { expect, test } from 'vitest';
import { htmlDocument, svgDocument } from '../../src/lib/sandbox_document';

test('a document begins with the policy that nothing is loaded', () => {
  for (const document of [htmlDocument('<b>x</b>'), svgDocument('<svg xmlns="http://www.w3.org/2000/svg"/>')]) {
    expect(document).toMatch(/^<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="default-src 'none'">/);
  }
});

test('styles of a picture that describe its look become attributes', () => {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg"><path style="fill: #f00; stroke:none; position: fixed; x"/></svg>';
  const shown = new DOMParser().parseFromString(svgDocument(svg), 'text/html').querySelector('path');
  expect(shown?.getAttribute('fill')).toBe('#f00');
  expect(shown?.getAttribute('stroke')).toBe('none');
  expect(shown?.hasAttribute('position')).toBe(false);
});
