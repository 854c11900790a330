import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

/** Beside index.html, so that it is part of the page, of the wheel and of the image. */
export const NOTICES_FILE = 'THIRD-PARTY-NOTICES.txt';

/** Packages whose code gets into the output without being a module of it. */
const OF_THE_BUILD: Record<string, RegExp> = {
  rolldown: /^\0rolldown\//,
  vite: /^\0vite\//,
  tailwindcss: /[\\/]src[\\/]style\.css/,
};
/** These require a statement of where the source code is (EPL-2.0, section 3.1; MPL-2.0, section 3.2). */
const ASKS_FOR_SOURCE = /EPL|MPL|LGPL|GPL/;
/** These ask for no notice, so a package may come without the text. */
const ASKS_FOR_NOTHING = /^(Unlicense|0BSD|CC0-1\.0)$/;

/** What a package contains of others without saying so in its licence. */
const CONTAINED: Record<string, string> = {
  elkjs:
    'elkjs is compiled from Java by the Google Web Toolkit and contains parts of its emulation of the Java library and of\n' +
    'Guava. Copyright Google Inc. and The Guava Authors. Licensed under the Apache License, Version 2.0\n' +
    '(https://www.apache.org/licenses/LICENSE-2.0).',
};

interface Package {
  name: string;
  version: string;
  license?: string;
  repository?: string | { url: string };
  homepage?: string;
}

/** The folder of the package that a module belongs to; undefined for a module of the page. */
function packageFolder(id: string): string | undefined {
  const path = id.replace(/^\0/, '').replace(/\?.*$/, '');
  const place = path.lastIndexOf('node_modules/');
  if (place < 0) return undefined;
  const parts = path.slice(place + 'node_modules/'.length).split('/');
  const name = parts.slice(0, parts[0]?.startsWith('@') ? 2 : 1).join('/');
  return path.slice(0, place) + 'node_modules/' + name;
}

/** The comments of a package's modules that name an owner of rights; the minifier drops them. */
function copyrights(modules: Iterable<string>): string[] {
  const found = new Set<string>();
  for (const path of modules) {
    for (const [comment] of readFileSync(path, 'utf8').matchAll(/\/\*[\s\S]*?\*\//g)) {
      if (/copyright|\(c\) \d|@license/i.test(comment)) found.add(comment.trim());
    }
  }
  return [...found];
}

function notice(folder: string, modules: Iterable<string>): string {
  const read = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Package;
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying|unlicense)/i.test(file)).toSorted();
  if (!read.license || (files.length === 0 && !ASKS_FOR_NOTHING.test(read.license)))
    throw new Error(`${read.name} is in the bundle, but its package has no text of its licence ${read.license ?? ''}`);
  const lines = [`${read.name} ${read.version}`, `Licence: ${read.license}`];
  if (ASKS_FOR_SOURCE.test(read.license)) {
    const source = typeof read.repository === 'string' ? read.repository : (read.repository?.url ?? read.homepage);
    if (!source) throw new Error(`${read.name} has ${read.license}, but does not say where its source code is`);
    lines.push(
      `Its source code is available under this licence, unchanged, from the npm registry as ${read.name}@${read.version}`,
      `and from ${source}.`,
    );
  }
  if (read.name in CONTAINED) lines.push('', CONTAINED[read.name] ?? '');
  for (const comment of copyrights(modules)) lines.push('', comment);
  for (const file of files) lines.push('', readFileSync(join(folder, file), 'utf8').trim());
  return lines.join('\n');
}

/**
 * Write the notices of all packages whose code is in the page or its workers.
 * `page` belongs into the plugins of the page, `worker` into those of its workers.
 */
export function thirdPartyNotices(root: string): { page: Plugin; worker: () => Plugin } {
  const folders = new Map<string, Set<string>>();
  const place = (folder: string): Set<string> => {
    const modules = folders.get(folder) ?? new Set<string>();
    folders.set(folder, modules);
    return modules;
  };
  const add = (id: string) => {
    const folder = packageFolder(id);
    const path = id.replace(/^\0/, '').replace(/\?.*$/, '');
    if (folder && existsSync(path)) place(folder).add(path);
    for (const [name, pattern] of Object.entries(OF_THE_BUILD))
      if (pattern.test(id)) place(join(root, 'node_modules', name));
  };
  const record = (bundle: Record<string, { type: string; modules?: Record<string, unknown> }>) => {
    for (const each of Object.values(bundle)) Object.keys(each.modules ?? {}).forEach(add);
  };
  return {
    worker: () => ({ name: 'larkspur-worker-notices', generateBundle: (_, bundle) => record(bundle as never) }),
    page: {
      name: 'larkspur-notices',
      apply: 'build',
      transform(_, id) {
        if (OF_THE_BUILD.tailwindcss?.test(id)) add(id); // a style sheet is an asset without modules
      },
      generateBundle(_, bundle) {
        record(bundle as never);
        const found = [...folders].toSorted(([one], [other]) => (one < other ? -1 : 1));
        const rule = `\n\n${'-'.repeat(78)}\n\n`;
        const head = 'The page of Larkspur contains code of the following packages, in part and minified.';
        this.emitFile({ type: 'asset', fileName: NOTICES_FILE, source: [head, ...found.map(([folder, modules]) => notice(folder, modules))].join(rule) + '\n' });
      },
    },
  };
}
