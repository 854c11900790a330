/**
 * Rendering of model Markdown as safe HTML, block by block. Scripts never run and images are not
 * loaded; they become links.
 */
import DOMPurify from 'dompurify';
import { Marked, Tokenizer, type Token, type TokenizerAndRendererExtension, type Tokens } from 'marked';
import { cjkEmphasis } from './cjk_emphasis';

const TAGS =
  'a b bdi blockquote br code del em h1 h2 h3 h4 h5 h6 hr i kbd li mark ol p pre s strong sub sup table tbody td th thead tr u ul';
/** Raw HTML is shown as text, except these tags. */
const HARMLESS = /^<\/?(?:b|br|i|kbd|mark|sub|sup|u)\s*\/?>$/i;

/** Attributes that never hold URLs. */
const PLAIN = ['target', 'rel', 'start', 'colspan', 'rowspan', 'align', 'data-image', 'data-math'];

const POLICY = {
  ALLOWED_TAGS: [...TAGS.split(' '), '#text'],
  ALLOWED_ATTR: ['href', ...PLAIN],
  ADD_URI_SAFE_ATTR: PLAIN,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
};

const marked = new Marked({ gfm: true, breaks: true, async: false });

/** Quotes and lists inside of each other; deeper ones are shown as text. */
const MAX_NESTING = 16;
let nesting = 0;

/** Return a tokenizer that recurses at most MAX_NESTING times, not as deep as the text is nested. */
function limited<T>(tokenize: (this: Tokenizer, text: string) => T) {
  return function nested(this: Tokenizer, text: string): T | undefined {
    if (nesting === MAX_NESTING) return undefined;
    nesting++;
    try {
      return tokenize.call(this, text);
    } finally {
      nesting--;
    }
  };
}

marked.use(cjkEmphasis, {
  tokenizer: {
    blockquote: limited(Tokenizer.prototype.blockquote),
    list: limited(Tokenizer.prototype.list),
  },
  renderer: {
    image({ href, text }: Tokens.Image): string {
      return `<a data-image="1" href="${escaped(href)}">${escaped(text || href)}</a>`;
    },
    html({ text }: Tokens.HTML | Tokens.Tag): string {
      return text.replace(/<[^>]*>?/g, (tag) => (HARMLESS.test(tag) ? tag : escaped(tag)));
    },
    checkbox({ checked }: Tokens.Checkbox): string {
      return checked ? '☑ ' : '☐ ';
    },
    code({ text }: Tokens.Code): string {
      return `<pre><code>${escaped(text)}</code></pre>`;
    },
  },
  extensions: [
    formula('inline', /^\$(?![\s$])((?:\\.|[^\\\n$])+?)(?<!\s)\$(?!\d)|^\\\((.+?)\\\)/, /\$|\\\(/),
    formula('block', /^\$\$([\s\S]+?)\$\$\s*(?:\n|$)|^\\\[([\s\S]+?)\\\]\s*(?:\n|$)/, /\$\$|\\\[/),
  ],
});

const MAX_FORMULA_CHARS = 2_000;

/** Formulas in TeX: `$…$` and `\(…\)` in a line, `$$…$$` and `\[…\]` as a block. Prices are none. */
function formula(level: 'inline' | 'block', pattern: RegExp, start: RegExp): TokenizerAndRendererExtension {
  return {
    name: `${level}Formula`,
    level,
    start: (text: string) => {
      const at = text.search(start);
      return at < 0 ? undefined : at;
    },
    tokenizer(text: string) {
      const [raw, first, second] = pattern.exec(text.slice(0, MAX_FORMULA_CHARS)) ?? [];
      if (raw === undefined) return undefined;
      return { type: `${level}Formula`, raw, text: (first ?? second ?? '').trim() };
    },
    renderer: (token) => `<code data-math="${level}">${escaped(String(token['text']))}</code>`,
  };
}

const purify = DOMPurify(window);

/** Longest address that is shown without being a link. */
const MAX_ADDRESS_CHARS = 100;

/** Show where a link leads, after its text. Addresses that are not on the web become text. */
purify.addHook('beforeSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  const address = node.getAttribute('href') ?? '';
  // without the address of the page as its base, as the browser would resolve it
  const { protocol, host, pathname, href } = URL.canParse(address) ? new URL(address) : new URL('a:');
  const text = node.textContent;
  let target = protocol === 'mailto:' ? pathname : host;
  if (/^(https?|mailto):$/.test(protocol)) {
    node.setAttribute('href', href);
    node.setAttribute('target', '_blank');
    node.setAttribute('rel', 'noopener noreferrer nofollow');
    if (isNamed(target, text)) return;
  } else {
    node.removeAttribute('href');
    target = decoded(address);
    if (target === text) return;
    if (target.length > MAX_ADDRESS_CHARS) target = `${target.slice(0, MAX_ADDRESS_CHARS)}…`;
  }
  // isolated, so that no character of the text changes its direction
  node.appendChild(document.createElement('bdi')).textContent = ` (${target})`;
});

/** Tell whether a link text is a URL of this host or address and looks like one. */
function isNamed(target: string, text: string): boolean {
  const rest = text.toLowerCase().replace(/^(https?:\/\/|mailto:)/, '');
  return rest.startsWith(target) && /^([/?#][!-~]*)?$/.test(rest.slice(target.length));
}

function decoded(address: string): string {
  try {
    return decodeURI(address);
  } catch {
    return address;
  }
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}

/** A top-level block; `raw` is its source. */
export interface Block {
  raw: string;
  token: Token;
}

/** Split a text into top-level blocks; all but the last one of a growing text are final. */
export function parseBlocks(text: string): Block[] {
  return marked.lexer(text).flatMap((token) => (token.type === 'space' ? [] : [{ raw: token.raw, token }]));
}

/**
 * Splits a growing text. Only the text after the last final block is parsed again, so that the cost
 * of a delta does not depend on the length of the text.
 */
export class IncrementalBlocks {
  private done: Block[] = [];
  private length = 0;
  private text = '';

  blocks(text: string): Block[] {
    if (!text.startsWith(this.text)) {
      this.done = [];
      this.length = 0;
    }
    this.text = text;
    const tokens = marked.lexer(text.slice(this.length));
    const last = tokens.findLastIndex((token) => token.type !== 'space');
    for (const token of tokens.slice(0, Math.max(0, last))) {
      this.length += token.raw.length;
      if (token.type !== 'space') this.done.push({ raw: token.raw, token });
    }
    const open = tokens[last];
    return open === undefined ? [...this.done] : [...this.done, { raw: open.raw, token: open }];
  }
}

/** Return the text and the language of a block of code, null for other blocks. */
export function codeOf({ token }: Block): { code: string; language: string } | null {
  if (token.type !== 'code') return null;
  const { text, lang } = token as Tokens.Code;
  return { code: text, language: (lang ?? '').split(/\s/)[0]?.slice(0, MAX_LANGUAGE_CHARS) ?? '' };
}

const MAX_LANGUAGE_CHARS = 30;

/** Return a block as sanitized HTML. */
export function render(block: Block): string {
  return purify.sanitize(marked.parser([block.token]), POLICY);
}
