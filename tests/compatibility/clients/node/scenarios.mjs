// Scenarios for clients of Node.js, as in ../python/scenarios.py.
import { deflateSync, crc32 } from "node:zlib";

const given = process.env;
export const URL_OF_GATEWAY = given.LARKSPUR_URL;
export const BASE_URL = `${URL_OF_GATEWAY}/v1`;
export const KEY = given.LARKSPUR_KEY;
export const MODEL = given.LARKSPUR_MODEL ?? "larkspur";
export const CASE = given.LARKSPUR_CASE;
export const DOOR = given.LARKSPUR_DOOR;
const SECONDS = 60;
const WRONG_KEY = "no-such-key-0000000000000000000000000000";
const SYSTEM = "Speak like a pirate.";
export const TOOL = {
  type: "function",
  function: {
    name: "add",
    description: "Adds two numbers.",
    parameters: {
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "integer" } },
      required: ["a", "b"],
    },
  },
};

export class Absent extends Error {}

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind), data]);
  const part = Buffer.alloc(body.length + 8);
  part.writeUInt32BE(data.length, 0);
  body.copy(part, 4);
  part.writeUInt32BE(checksum(body), body.length + 4);
  return part;
}

// Node.js 20 has no crc32 before 20.15.
function checksum(data) {
  if (crc32) return crc32(data);
  let value = ~0;
  for (const byte of data) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return ~value >>> 0;
}

export function png() {
  const side = 64;
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.set([8, 2], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(side * 3, Buffer.from([255, 0, 0]))]);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", head),
    chunk("IDAT", deflateSync(Buffer.concat(Array(side).fill(row)))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

export const picture = () => `data:image/png;base64,${png().toString("base64")}`;
export const prompt = (scenario) => `case: ${scenario} [${CASE}]`;
const user = (text) => ({ role: "user", content: text });

export function say(scenario, result) {
  process.stdout.write(`${JSON.stringify({ scenario, ...result })}\n`);
}

export async function attempt(scenario, work) {
  const only = given.LARKSPUR_SCENARIO;
  if (only && !only.split(",").includes(scenario)) return;
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${SECONDS} seconds`)), SECONDS * 1000);
  });
  try {
    say(scenario, { result: (await Promise.race([work(), late])) ?? null });
  } catch (error) {
    if (error instanceof Absent) say(scenario, { absent: error.message });
    else {
      console.error(error);
      say(scenario, { error: told(error) });
    }
  } finally {
    clearTimeout(timer);
  }
}

function told(error) {
  const cause = error?.lastError ?? error?.cause;
  return `${error?.name}: ${error?.message ?? error}${cause ? ` (${cause.message ?? cause})` : ""}`;
}

// `ask` takes messages as in Chat Completions and {stream, tools, key}, and returns the text.
export async function chat(ask, { models = null, without = {} } = {}) {
  const one = async (scenario, work) => {
    if (scenario in without) say(scenario, { absent: without[scenario] });
    else await attempt(scenario, work);
  };
  const call = (messages, options = {}) =>
    ask(messages, { stream: false, tools: null, key: KEY, ...options });
  await one("plain", () => call([user(prompt("plain"))]));
  await one("stream", () => call([user(prompt("stream"))], { stream: true }));
  await one("history", async () => {
    const messages = [];
    let answer;
    for (const scenario of ["write", "plain", "read"]) {
      messages.push(user(prompt(scenario)));
      answer = await call([...messages]);
      messages.push({ role: "assistant", content: answer });
    }
    return answer;
  });
  await one("tools", () => call([user(prompt("tools"))], { tools: [TOOL] }));
  await one("picture", () =>
    call([
      {
        role: "user",
        content: [
          { type: "text", text: prompt("picture") },
          { type: "image_url", image_url: { url: picture() } },
        ],
      },
    ]),
  );
  await one("system", () => call([{ role: "system", content: SYSTEM }, user(prompt("system"))]));
  await one("wrong key", () => call([user(prompt("plain"))], { key: WRONG_KEY }));
  await one("failing", () => call([user(prompt("failing"))]));
  if (models) await one("models", models);
  else say("models", { absent: "it does not list models" });
  process.exit(0);
}

// Create a task over HTTP and return {task_id, session_id}.
export async function task(text, session = null) {
  const response = await fetch(`${URL_OF_GATEWAY}/api/tasks`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ task: text, session_id: session }),
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}
