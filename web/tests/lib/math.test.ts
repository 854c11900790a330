import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { highlight } from '../../src/lib/highlight';
import { parseBlocks, render } from '../../src/lib/markdown';
import { renderFormula } from '../../src/lib/math';

function formulas(text: string): string[] {
  const box = document.createElement('div');
  box.innerHTML = parseBlocks(text).map(render).join('');
  return [...box.querySelectorAll<HTMLElement>('code[data-math]')].map(
    (one) => `${one.dataset['math']}: ${one.textContent}`,
  );
}

describe('formulas', () => {
  test.each([
    ['so $a^2 + b^2$ is', ['inline: a^2 + b^2']],
    ['so \\(a<b\\) is', ['inline: a<b']],
    ['$$\n\\frac{1}{2}\n$$', ['block: \\frac{1}{2}']],
    ['\\[\nx = 1\n\\]', ['block: x = 1']],
    ['it costs $5 or $6, or US$7', []],
    ['`$a$` and $ a $ and 5$', []],
    ['```\n$a$\n```', []],
  ])('%j', (text, expected) => {
    expect(formulas(text)).toEqual(expected);
  });

  test('are MathML without anything that acts', () => {
    expect(renderFormula('\\frac{1}{2}', true)).toContain('<mfrac>');
    expect(renderFormula('\\frac{1}{2}', true)).not.toContain('frac{');
    expect(renderFormula('\\notacommand{1}', false)).toBeNull();
    for (const tex of ['\\href{javascript:alert(1)}{x}', '\\url{https://x}', '\\htmlStyle{color:red}{x}', '\\includegraphics{x.png}']) {
      const box = document.createElement('div');
      box.innerHTML = renderFormula(tex, false) ?? '';
      expect(box.querySelector('a,img,style,[style],[href],[src]')).toBeNull();
    }
  });

  test('of any text are rendered or refused', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'\\{}^_&%$ab1<"frac ') }), (tex) => {
        const box = document.createElement('div');
        box.innerHTML = renderFormula(tex, false) ?? '';
        expect(box.querySelector('script,img,a,style,[style],[href]')).toBeNull();
      }),
      { numRuns: 200 },
    );
  });
});

describe('code', () => {
  test('has classes for its tokens and no other markup', () => {
    expect(highlight('print("<b>")', 'python')).toBe(
      '<span class="hljs-built_in">print</span>(<span class="hljs-string">"&lt;b&gt;"</span>)',
    );
    expect(highlight('+a\n-b', 'diff')).toContain('<span class="hljs-addition">+a</span>');
    expect(highlight('x', 'no-such-language')).toBeNull();
    expect(highlight('a\nb', 'py')).not.toBeNull();
  });

  test('keeps its text', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom('python', 'html', 'bash', 'json', 'ts'), (code, language) => {
        const box = document.createElement('div');
        box.innerHTML = highlight(code, language) ?? '';
        expect(box.textContent).toBe(code.replaceAll('\r\n', '\n').replaceAll('\r', '\n'));
      }),
      { numRuns: 50 },
    );
  });
});
