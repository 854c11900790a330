# client: openai-agents (Python)
# registry: PyPI
# packages: openai-agents==0.24.0
# door: chat responses
import asyncio

import openai
import scenarios
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)

set_tracing_disabled(disabled=True)
KINDS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def converted(message):
    if isinstance(message["content"], str):
        return message
    parts = []
    for part in message["content"]:
        if part["type"] == "text":
            parts.append({"type": "input_text", "text": part["text"]})
        else:
            image = {"type": "input_image", "image_url": part["image_url"]["url"]}
            parts.append({**image, "detail": "auto"})
    return {"role": message["role"], "content": parts}


async def answer(messages, stream, tools, key):
    client = openai.AsyncOpenAI(base_url=scenarios.BASE_URL, api_key=key)
    model = KINDS[scenarios.DOOR](model=scenarios.MODEL, openai_client=client)
    system = messages[0]["content"] if messages[0]["role"] == "system" else None
    agent = Agent(name="a", instructions=system, model=model, tools=[add] if tools else [])
    given = [converted(each) for each in messages if each["role"] != "system"]
    if not stream:
        return (await Runner.run(agent, given)).final_output
    result = Runner.run_streamed(agent, given)
    async for _ in result.stream_events():
        pass
    return result.final_output


def ask(messages, *, stream, tools, key):
    return asyncio.run(answer(messages, stream, tools, key))


scenarios.chat(ask)
scenarios.end()
