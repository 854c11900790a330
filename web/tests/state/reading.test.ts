import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const SOURCE = join(import.meta.dirname, '../../src');
/** What components read: values that are there, never the start of loading them. */
const READ = ['api', 'i18n', 'state'];

/** A function on the top level of a module, with its signature in one line. */
const FUNCTION = /^export (?:async )?(?:function (\w+)[^]*?|const (\w+)\b[^\n]*=> \{)\n\}/gm;
/** Loading, and changes of what others read, besides what a callback does later. */
const EFFECT = /\buseEffect\(|\bvoid \w*[lL]oad\w*\(|\.setState\(/;

/** Return the hooks of a module that return something and load or change something as well. */
function impureReaders(code: string): string[] {
  return [...code.matchAll(FUNCTION)].flatMap(([text, name = '', constant = '']) => {
    const isReader = /^use[A-Z]/.test(name || constant) && !/^[^\n]*\): void \{/.test(text);
    // callbacks that are returned run when they are called
    const body = text.replaceAll(/=> (?:\{[^]*?\n {2}\}|[^\n]*);/g, '=> undefined;');
    return isReader && EFFECT.test(body) ? [name || constant] : [];
  });
}

describe('reading', () => {
  const modules = READ.flatMap((folder) => readdirSync(join(SOURCE, folder)).map((file) => `${folder}/${file}`));

  it('loads and changes nothing', () => {
    expect(modules.flatMap((module) => impureReaders(readFileSync(join(SOURCE, module), 'utf-8')))).toEqual([]);
  });

  it('is told from an effect, which returns nothing', () => {
    const loads = 'export function useTexts(): Texts {\n  useEffect(() => void loadTexts(), []);\n  return texts;\n}\n';
    const follows = 'export function useTextEvents(): void {\n  useEffect(() => follow(), []);\n}\n';
    const acts = 'export function useNext() {\n  const next = () => useStore.setState({});\n  return next;\n}\n';
    expect(impureReaders(loads + follows + acts)).toEqual(['useTexts']);
  });
});
