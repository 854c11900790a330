// client: eventsource-client
// registry: npm
// packages: eventsource-client@1.2.0
// door: stream
import { createEventSource } from "eventsource-client";
import { HEADERS, stream } from "./sse_scenarios.mjs";

async function read(url, lastId, _names, take) {
  const source = createEventSource({
    url,
    headers: HEADERS,
    initialLastEventId: lastId ?? undefined,
  });
  for await (const event of source)
    if (take({ name: event.event ?? "message", data: event.data, id: event.id })) break;
  source.close();
}

await stream(read);
