// client: eventsource
// registry: npm
// packages: eventsource@5.1.5
// door: stream
import { EventSource } from "eventsource";
import { HEADERS, stream } from "./sse_scenarios.mjs";

function read(url, lastId, names, take) {
  const headers = { ...HEADERS, ...(lastId ? { "Last-Event-ID": lastId } : {}) };
  const source = new EventSource(url, {
    fetch: (address, given) =>
      fetch(address, { ...given, headers: { ...given.headers, ...headers } }),
  });
  return new Promise((resolve, reject) => {
    const handle = (event) => {
      if (!take({ name: event.type, data: event.data, id: event.lastEventId })) return;
      source.close();
      resolve();
    };
    for (const name of names) source.addEventListener(name, handle);
    source.onmessage = handle;
    source.onerror = (error) => {
      source.close();
      reject(new Error(error.message ?? "no connection"));
    };
  });
}

await stream(read);
