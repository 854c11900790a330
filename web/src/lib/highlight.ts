/** Syntax highlighting of code, loaded when an answer has code of a known language. */
import DOMPurify from 'dompurify';
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import dockerfile from 'highlight.js/lib/languages/dockerfile';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';

const LANGUAGES = { bash, c, cpp, css, diff, dockerfile, go, ini, java, javascript, json, python, rust, sql, typescript, xml, yaml };
const POLICY = { ALLOWED_TAGS: ['span', '#text'], ALLOWED_ATTR: ['class'], ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false };
const CLASS = /^hljs-[a-z_-]+( [a-z_]+)*$/;

for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

const purify = DOMPurify(window);
purify.addHook('uponSanitizeAttribute', (_node, attribute) => {
  if (!CLASS.test(attribute.attrValue)) attribute.keepAttr = false;
});

/** Return code as HTML with a class for each kind of token, null for an unknown language. */
export function highlight(code: string, language: string): string | null {
  if (hljs.getLanguage(language) === undefined) return null;
  return purify.sanitize(hljs.highlight(code, { language, ignoreIllegals: true }).value, POLICY);
}
