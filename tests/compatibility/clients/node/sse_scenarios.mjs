// Scenarios for readers of server-sent events, as in ../python/sse_scenarios.py.
import { KEY, URL_OF_GATEWAY, attempt, prompt, task } from "./scenarios.mjs";

const END = "workflow.result.final";
export const HEADERS = { Authorization: `Bearer ${KEY}` };

function nameIn(data) {
  try {
    return JSON.parse(data).event ?? "";
  } catch {
    return "";
  }
}

// `read(url, lastId, names, take)` calls take({name, data, id}) for each event until it returns
// true. `names` are those to listen for, where a client must say so.
export async function stream(read, { without = {} } = {}) {
  async function untilEnd(session, { lastId = null, further = "" } = {}) {
    const found = [];
    const url = `${URL_OF_GATEWAY}/api/sse?session_id=${session}${further}`;
    await read(url, lastId, [END, "workflow.input.received", "workflow.node.started"], (event) => {
      found.push(event);
      return event.name === END || nameIn(event.data) === END;
    });
    return found;
  }
  await attempt("named", async () => {
    const made = await task(prompt("plain"));
    const found = await untilEnd(made.session_id);
    for (const event of found) JSON.parse(event.data);
    return found.map((event) => event.name);
  });
  await attempt("unnamed", async () => {
    const made = await task(prompt("plain"));
    const found = await untilEnd(made.session_id, { further: "&unnamed=1" });
    const names = found.map((event) => event.name).filter((name) => name && name !== "message");
    return names.length ? names : found.map((event) => nameIn(event.data));
  });
  await attempt("resumed", async () => {
    const made = await task(prompt("plain"));
    const found = await untilEnd(made.session_id);
    const lastId = found.map((event) => event.id).filter(Boolean).at(-1);
    await task(prompt("later"), made.session_id);
    return (await untilEnd(made.session_id, { lastId })).map((event) => event.data).join("");
  });
  process.exit(0);
}
