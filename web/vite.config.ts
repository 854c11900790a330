import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';
import { thirdPartyNotices } from './third_party_notices.ts';

/** Write a `.gz` and a `.br` file for each asset, so that the server does not compress them. */
function compressed(): Plugin {
  return {
    name: 'larkspur-compressed',
    writeBundle(options, bundle) {
      for (const name of Object.keys(bundle)) {
        if (!/\.(js|css|svg)$/.test(name)) continue;
        const path = join(options.dir ?? '', name);
        const content = readFileSync(path);
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
        // the best quality takes 5 s for the largest chunk
        const best = content.length < 1_000_000 ? constants.BROTLI_MAX_QUALITY : 9;
        const quality = { [constants.BROTLI_PARAM_QUALITY]: best };
        writeFileSync(`${path}.br`, brotliCompressSync(content, { params: quality }));
      }
    },
  };
}

/** Leave out what icons do not need in production: React keys, and a read that prevents inlining. */
function smallIcons(): Plugin {
  return {
    name: 'larkspur-small-icons',
    apply: 'build',
    transform(code, id) {
      if (!/[\\/]lucide-react[\\/]dist[\\/]esm[\\/]icons[\\/]/.test(id)) return undefined;
      return code.replace('__iconData.node;', '').replace(/, key: "\w+"/g, '');
    },
  };
}

const ON_DEMAND_LIBRARIES = /[\\/](virtua|highlight\.js|katex|lucide-react[\\/]dist[\\/]esm[\\/]icons)[\\/]/;
const WAITING =
  /(src[\\/](components[\\/]thread[\\/](action|waiting_messages)|(i18n|state)[\\/]waiting_messages)|icons[\\/](corner-down-left|undo-2))\./;
const DIALOGS = /src[\\/](components[\\/]layout[\\/](\w*dialog|drawer|command_palette)|i18n[\\/](shortcuts|dialogs))/;
const DECISION =
  /src[\\/](components[\\/](decision[\\/](?!decision_bar)|thread[\\/]tool_details)|i18n[\\/]decision|state[\\/]answers|lib[\\/]relative_time)/;

const FILES =
  /src[\\/](components[\\/](files|layout[\\/](side_panel|background_commands))|api[\\/](changes|commands|files|upload)|i18n[\\/](changes|files)|state[\\/](versions|upload_queue)|lib[\\/](csv|file_|sandbox))/;
/** Icons that only these modules use; otherwise each set of them is a chunk. */
const FILE_ICONS =
  /icons[\\/](archive|chevron-down|search|eighth-notes|braces|download|external-link|file|file-text|folder-down|image|rotate-ccw|rotate-ccw-clock|star|table|x)\./;

const SESSIONS =
  /(src[\\/](components[\\/]sessions|i18n[\\/]sessions)|icons[\\/](ellipsis|mail-open|messages-square|package|package-open|pin|pin-off|sliders-horizontal|square-terminal|text-search)\.)/;

const TASKS = /src[\\/](components[\\/]tasks|i18n[\\/]tasks)/;

const SETTINGS = /src[\\/](components[\\/]settings|i18n[\\/]settings|api[\\/]settings)/;

const OPERATION = /src[\\/](components[\\/]operation|i18n[\\/]operation)/;

const TASK_MODES =
  /(src[\\/](components[\\/]composer[\\/]task_modes|i18n[\\/]modes)|i18n[\\/]modes\.\w+|icons[\\/](list-checks|shield-exclamation-point)\.)/;

/** The libraries and the modules that most chunks import form one chunk. */
function isShared(id: string): boolean {
  const isLibrary = id.includes('node_modules') && !ON_DEMAND_LIBRARIES.test(id);
  return isLibrary || /src[\\/](api[\\/](client|address)|lib[\\/](owner|tool_label)|stream|state)[\\/.]/.test(id);
}

const notices = thirdPartyNotices(import.meta.dirname);

export default defineConfig({
  // the server adds the path of the public address to the document
  base: './',
  plugins: [react(), tailwindcss(), smallIcons(), notices.page, compressed()],
  worker: { plugins: () => [notices.worker()] },
  build: {
    outDir: '../internal/channels/web/dist',
    emptyOutDir: true,
    target: 'es2023',
    // the content security policy allows neither inline scripts nor data: URLs
    assetsInlineLimit: 0,
    modulePreload: false,
    manifest: true,
    rolldownOptions: {
      checks: { pluginTimings: false },
      // no getter of the page or its libraries does anything but return a value
      treeshake: { propertyReadSideEffects: false },
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            { name: 'waiting_messages', test: WAITING },
            { name: 'dialogs', test: DIALOGS },
            { name: 'sessions', test: SESSIONS },
            { name: 'task_modes', test: TASK_MODES },
            { name: 'decision', test: DECISION },
            { name: 'settings', test: SETTINGS },
            { name: 'operation', test: OPERATION },
            { name: 'tasks', test: TASKS },
            { name: 'files', test: (id: string) => FILES.test(id) || FILE_ICONS.test(id) },
            { name: 'notifications', test: /src[\\/]state[\\/]notifications\./ },
            { name: 'shared', test: isShared },
          ],
        },
      },
    },
  },
  // wouter needs the shim for React 17 only
  resolve: { alias: { 'use-sync-external-store/shim/index.js': 'react' } },
  // the sentences about runs are those of the other channels
  server: { fs: { allow: ['..'] }, proxy: { '/api': 'http://127.0.0.1:8420', '/preview': 'http://127.0.0.1:8420', '/health': 'http://127.0.0.1:8420' } },
  test: { include: ['tests/**/*.test.{ts,tsx}'], environment: 'jsdom', testTimeout: 30_000 },
} as Parameters<typeof defineConfig>[0]);
