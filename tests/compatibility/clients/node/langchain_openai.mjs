// client: @langchain/openai
// registry: npm
// packages: @langchain/openai@1.6.0 @langchain/core@1.4.0
// door: chat responses
import { ChatOpenAI } from "@langchain/openai";
import { BASE_URL, DOOR, MODEL, chat } from "./scenarios.mjs";

async function ask(messages, { stream, tools, key }) {
  const plain = new ChatOpenAI({
    model: MODEL,
    apiKey: key,
    configuration: { baseURL: BASE_URL },
    useResponsesApi: DOOR === "responses",
  });
  const model = tools ? plain.bindTools(tools) : plain;
  if (!stream) return (await model.invoke(messages)).text;
  let text = "";
  for await (const chunk of await model.stream(messages)) text += chunk.text;
  return text;
}

await chat(ask);
