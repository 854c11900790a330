/** Components in chunks of their own, which are loaded when the browser is idle or on first use. */
import { address } from '../api/address';
import { createElement, lazy, useState, type ComponentType } from 'react';

const RETRY_MS = 2_000;

const loaders: Array<() => Promise<unknown>> = [];

/**
 * Return a component whose code is loaded on first use. Unlike React.lazy it renders at once if its
 * chunk is already loaded, and a chunk that cannot be loaded does not break the page.
 */
export function lazyComponent<P extends object>(
  load: () => Promise<ComponentType<P>>,
): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  const loadOnce = async () => {
    loaded ??= await load();
    return loaded;
  };
  loaders.push(loadOnce);
  const Lazy = lazy(async () => ({ default: await loadOnce().catch(reloadWhenReachable) }));
  return function LazyComponent(props: P) {
    // chosen once per mount: another component would lose its state
    const [Component] = useState<ComponentType<P>>(() => loaded ?? (Lazy as ComponentType<P>));
    return createElement(Component, props);
  };
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
    const response = await fetch(address('/health')).catch(() => null);
    if (response !== null) location.reload();
  }
}
