// client: @openai/agents
// registry: npm
// packages: @openai/agents@0.20.0 zod@4.6.7
// door: chat responses
import {
  Agent,
  OpenAIProvider,
  Runner,
  assistant,
  setTracingDisabled,
  tool,
  user,
} from "@openai/agents";
import { z } from "zod";
import { BASE_URL, DOOR, MODEL, chat } from "./scenarios.mjs";

setTracingDisabled(true);
const add = tool({
  name: "add",
  description: "Adds two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => String(a + b),
});
const part = (each) =>
  each.type === "text"
    ? { type: "input_text", text: each.text }
    : { type: "input_image", image: each.image_url.url };
function converted(message) {
  if (message.role === "assistant") return assistant(message.content);
  return user(typeof message.content === "string" ? message.content : message.content.map(part));
}

async function ask(messages, { stream, tools, key }) {
  const modelProvider = new OpenAIProvider({
    apiKey: key,
    baseURL: BASE_URL,
    useResponses: DOOR === "responses",
  });
  const instructions = messages.find((message) => message.role === "system")?.content;
  const agent = new Agent({ name: "a", model: MODEL, instructions, tools: tools ? [add] : [] });
  const given = messages.filter((message) => message.role !== "system").map(converted);
  const result = await new Runner({ modelProvider }).run(agent, given, { stream });
  if (!stream) return result.finalOutput;
  let text = "";
  for await (const piece of result.toTextStream()) text += piece;
  await result.completed;
  return text;
}

await chat(ask);
