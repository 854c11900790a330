/**
 * What the layout library expects of a page: without a document it takes this worker for its own
 * and exports nothing, and it assigns `self` to itself.
 */
Object.assign(globalThis, { document: {} });
Object.defineProperty(globalThis, 'self', { value: globalThis, writable: true });
