// client: AI SDK (@ai-sdk/openai-compatible)
// registry: npm
// packages: @ai-sdk/openai-compatible@3.0.92 ai@7.0.173 zod@4.6.7
// door: chat
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, tool } from "ai";
import { z } from "zod";
import { BASE_URL, MODEL, chat } from "./scenarios.mjs";

const add = tool({
  description: "Adds two numbers.",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => a + b,
});
const converted = (message) =>
  typeof message.content === "string"
    ? message
    : {
        role: "user",
        content: message.content.map((part) =>
          part.type === "text" ? part : { type: "image", image: part.image_url.url },
        ),
      };

async function ask(messages, { stream, tools, key }) {
  const provider = createOpenAICompatible({ name: "larkspur", baseURL: BASE_URL, apiKey: key });
  const system = messages.find((message) => message.role === "system")?.content;
  const given = {
    model: provider(MODEL),
    system,
    messages: messages.filter((message) => message.role !== "system").map(converted),
    ...(tools ? { tools: { add } } : {}),
  };
  if (!stream) return (await generateText(given)).text;
  let text = "";
  for await (const piece of streamText(given).textStream) text += piece;
  return text;
}

await chat(ask);
