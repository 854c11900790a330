// client: openai (Node.js)
// registry: npm
// packages: openai@7.59.0
// door: chat responses
import OpenAI from "openai";
import { BASE_URL, DOOR, KEY, MODEL, chat } from "./scenarios.mjs";

const part = (each) =>
  each.type === "text"
    ? { type: "input_text", text: each.text }
    : { type: "input_image", image_url: each.image_url.url };
const converted = (message) =>
  typeof message.content === "string"
    ? message
    : { ...message, content: message.content.map(part) };

async function completed(client, messages, stream, tools) {
  const given = { model: MODEL, messages, stream, ...(tools ? { tools } : {}) };
  const reply = await client.chat.completions.create(given);
  if (!stream) return reply.choices[0].message.content;
  let text = "";
  for await (const chunk of reply) text += chunk.choices[0]?.delta?.content ?? "";
  return text;
}

async function responded(client, messages, stream, tools) {
  const further = tools ? { tools: tools.map((each) => ({ type: "function", ...each.function })) } : {};
  const input = messages.map(converted);
  const reply = await client.responses.create({ model: MODEL, input, stream, ...further });
  if (!stream) return reply.output_text;
  let text = "";
  for await (const event of reply)
    if (event.type === "response.output_text.delta") text += event.delta;
  return text;
}

function ask(messages, { stream, tools, key }) {
  const client = new OpenAI({ baseURL: BASE_URL, apiKey: key });
  return (DOOR === "chat" ? completed : responded)(client, messages, stream, tools);
}

async function models() {
  const client = new OpenAI({ baseURL: BASE_URL, apiKey: KEY });
  const found = [];
  for await (const model of await client.models.list()) found.push(model.id);
  return found;
}

await chat(ask, { models });
