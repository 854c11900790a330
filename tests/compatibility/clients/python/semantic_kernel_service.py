# client: semantic-kernel
# registry: PyPI
# packages: semantic-kernel==1.45.0
# door: chat
import asyncio

import openai
import scenarios
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
)
from semantic_kernel.contents import ChatHistory, ChatMessageContent, ImageContent, TextContent
from semantic_kernel.functions import kernel_function


class Sums:
    @kernel_function
    def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        return a + b


def converted(message):
    if isinstance(message["content"], str):
        return ChatMessageContent(role=message["role"], content=message["content"])
    text, image = message["content"]
    items = [
        TextContent(text=text["text"]),
        ImageContent(data_uri=image["image_url"]["url"]),
    ]
    return ChatMessageContent(role="user", items=items)


async def answer(messages, stream, tools, key):
    client = openai.AsyncOpenAI(base_url=scenarios.BASE_URL, api_key=key)
    service = OpenAIChatCompletion(ai_model_id=scenarios.MODEL, async_client=client)
    history = ChatHistory(messages=[converted(message) for message in messages])
    settings = OpenAIChatPromptExecutionSettings()
    kernel = Kernel()
    if tools:
        kernel.add_plugin(Sums(), plugin_name="sums")
        settings.function_choice_behavior = FunctionChoiceBehavior.Auto()
    if not stream:
        found = await service.get_chat_message_content(history, settings, kernel=kernel)
        return str(found)
    pieces = service.get_streaming_chat_message_content(history, settings, kernel=kernel)
    return "".join([str(piece) async for piece in pieces])


def ask(messages, *, stream, tools, key):
    return asyncio.run(answer(messages, stream, tools, key))


scenarios.chat(ask)
scenarios.end()
