# client: autogen-ext
# registry: PyPI
# packages: autogen-ext[openai]==0.7.5 autogen-agentchat==0.7.5
# door: chat
import asyncio

import scenarios
from autogen_core import Image
from autogen_core.models import AssistantMessage, SystemMessage, UserMessage
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def converted(message):
    content = message["content"]
    if message["role"] == "system":
        return SystemMessage(content=content)
    if message["role"] == "assistant":
        return AssistantMessage(content=content, source="assistant")
    if not isinstance(content, str):
        content = [content[0]["text"], Image.from_uri(content[1]["image_url"]["url"])]
    return UserMessage(content=content, source="user")


async def answer(messages, stream, tools, key):
    client = OpenAIChatCompletionClient(
        model=scenarios.MODEL,
        base_url=scenarios.BASE_URL,
        api_key=key,
        model_info={
            "vision": True,
            "function_calling": True,
            "json_output": False,
            "structured_output": False,
            "family": "unknown",
        },
    )
    given = [converted(message) for message in messages]
    further = {"tools": [FunctionTool(add, description="Adds.")]} if tools else {}
    if not stream:
        return (await client.create(given, **further)).content
    pieces = [piece async for piece in client.create_stream(given, **further)]
    return "".join(piece for piece in pieces if isinstance(piece, str))


def ask(messages, *, stream, tools, key):
    return asyncio.run(answer(messages, stream, tools, key))


scenarios.chat(ask)
scenarios.end()
