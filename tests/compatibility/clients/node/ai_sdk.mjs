// client: AI SDK (@ai-sdk/openai)
// registry: npm
// packages: @ai-sdk/openai@4.0.118 ai@7.0.173 zod@4.6.7
// door: chat responses
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText, tool } from "ai";
import { z } from "zod";
import { BASE_URL, DOOR, MODEL, chat } from "./scenarios.mjs";

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
  const provider = createOpenAI({ baseURL: BASE_URL, apiKey: key });
  const model = DOOR === "chat" ? provider.chat(MODEL) : provider(MODEL);
  const system = messages.find((message) => message.role === "system")?.content;
  const given = {
    model,
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
