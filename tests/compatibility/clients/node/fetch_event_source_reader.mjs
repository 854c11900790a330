// client: @microsoft/fetch-event-source
// registry: npm
// packages: @microsoft/fetch-event-source@2.0.1
// door: stream
// It is written for browsers, whose names it expects.
globalThis.window = globalThis;
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };
const { fetchEventSource } = await import("@microsoft/fetch-event-source");
const { HEADERS, stream } = await import("./sse_scenarios.mjs");

async function read(url, lastId, _names, take) {
  const ending = new AbortController();
  await fetchEventSource(url, {
    headers: { ...HEADERS, ...(lastId ? { "last-event-id": lastId } : {}) },
    signal: ending.signal,
    fetch,
    onmessage(event) {
      // It hands frames without data on.
      if (event.data && take({ name: event.event, data: event.data, id: event.id })) ending.abort();
    },
    onerror(error) {
      throw error;
    },
  });
}

await stream(read);
