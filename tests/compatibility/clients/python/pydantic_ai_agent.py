# client: pydantic-ai
# registry: PyPI
# packages: pydantic-ai-slim[openai]==2.68.0
# door: chat responses
import asyncio

import scenarios
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

KINDS = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def earlier(message):
    if message["role"] == "assistant":
        return ModelResponse(parts=[TextPart(content=message["content"])])
    return ModelRequest(parts=[UserPromptPart(content=message["content"])])


def prompted(content):
    if isinstance(content, str):
        return content
    return [content[0]["text"], BinaryContent(data=scenarios.png(), media_type="image/png")]


async def answer(messages, stream, tools, key):
    provider = OpenAIProvider(base_url=scenarios.BASE_URL, api_key=key)
    model = KINDS[scenarios.DOOR](scenarios.MODEL, provider=provider)
    system = [each["content"] for each in messages if each["role"] == "system"]
    agent = Agent(model, instructions=system or None, tools=[add] if tools else [])
    spoken = [each for each in messages if each["role"] != "system"]
    history = [earlier(message) for message in spoken[:-1]]
    prompt = prompted(spoken[-1]["content"])
    if not stream:
        return (await agent.run(prompt, message_history=history)).output
    async with agent.run_stream(prompt, message_history=history) as result:
        return "".join([piece async for piece in result.stream_text(delta=True)])


def ask(messages, *, stream, tools, key):
    return asyncio.run(answer(messages, stream, tools, key))


scenarios.chat(ask)
scenarios.end()
