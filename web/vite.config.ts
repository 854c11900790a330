import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** Writes `.gz` and `.br` beside every asset: the server compresses nothing that never changes. */
function compressed(): Plugin {
  return {
    name: 'larkspur-compressed',
    writeBundle(options, bundle) {
      for (const name of Object.keys(bundle)) {
        if (!/\.(js|css|svg)$/.test(name)) continue;
        const path = join(options.dir ?? '', name);
        const content = readFileSync(path);
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
        const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
        writeFileSync(`${path}.br`, brotliCompressSync(content, { params: quality }));
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), tailwindcss(), compressed()],
  build: {
    outDir: '../internal/channels/web/dist',
    emptyOutDir: true,
    target: 'es2023',
    // the policy of the page allows neither inline scripts nor data: addresses
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8420', '/health': 'http://127.0.0.1:8420' } },
  test: { include: ['tests/**/*.test.{ts,tsx}'], environment: 'jsdom' },
} as Parameters<typeof defineConfig>[0]);
