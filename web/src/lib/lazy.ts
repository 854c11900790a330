/** Components in chunks of their own, which are loaded when the browser is idle or on first use. */
import { lazy, type ComponentType, type LazyExoticComponent } from 'react';

const RETRY_MS = 2_000;

const loaders: Array<() => Promise<unknown>> = [];

/** Like React.lazy; a chunk that cannot be loaded never breaks the page. */
export function lazyComponent<P>(
  load: () => Promise<ComponentType<P>>,
): LazyExoticComponent<ComponentType<P>> {
  loaders.push(load);
  return lazy(async () => ({ default: await load().catch(reloadWhenReachable) }));
}

function preload(): void {
  for (const load of loaders) load().catch(() => undefined);
}

/** Load all chunks while the browser is idle. A failure is ignored until a chunk is needed. */
export function preloadComponents(): void {
  if ('requestIdleCallback' in globalThis) requestIdleCallback(preload, { timeout: 2_000 });
  else setTimeout(preload, 500);
}

/** The server is down or has a newer page: load that one as soon as it answers. */
async function reloadWhenReachable(): Promise<never> {
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
    await new Promise((resolve) => {
      setTimeout(resolve, RETRY_MS);
    });
    // oxlint-disable-next-line no-await-in-loop
    const response = await fetch('/health').catch(() => null);
    if (response !== null) location.reload();
  }
}
