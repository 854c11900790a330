/** Formulas as MathML, which browsers lay out themselves; loaded when an answer has a formula. */
import DOMPurify from 'dompurify';
import { renderToString } from 'katex';

const LIMITS = { maxSize: 20, maxExpand: 500 };
const POLICY = { USE_PROFILES: { mathMl: true }, FORBID_ATTR: ['href', 'style', 'id', 'class', 'xlink:href'], ALLOW_DATA_ATTR: false };

/** The TeX source in the result, whose text would be shown. */
const SOURCE = /<annotation[\s\S]*?<\/annotation>/;

const purify = DOMPurify(window);

/** Return a formula in TeX as MathML, null if it cannot be read. */
export function renderFormula(tex: string, block: boolean): string | null {
  try {
    const html = renderToString(tex, { output: 'mathml', displayMode: block, throwOnError: true, trust: false, strict: false, ...LIMITS });
    const [math] = /<math[\s\S]*<\/math>/.exec(html.replace(SOURCE, '')) ?? [];
    return math === undefined ? null : purify.sanitize(math, POLICY);
  } catch {
    return null;
  }
}
