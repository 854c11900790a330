# client: llama-index
# registry: PyPI
# packages: llama-index-llms-openai-like==0.8.1
# door: chat
import scenarios
from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def converted(message):
    if isinstance(message["content"], str):
        return ChatMessage(role=message["role"], content=message["content"])
    text, _ = message["content"]
    blocks = [TextBlock(text=text["text"]), ImageBlock(image=scenarios.png())]
    return ChatMessage(role=message["role"], blocks=blocks)


def ask(messages, *, stream, tools, key):
    model = OpenAILike(
        model=scenarios.MODEL,
        api_base=scenarios.BASE_URL,
        api_key=key,
        is_chat_model=True,
        is_function_calling_model=True,
    )
    given = [converted(message) for message in messages]
    if tools:
        found = model.chat_with_tools([FunctionTool.from_defaults(add)], chat_history=given)
        return found.message.content
    if not stream:
        return model.chat(given).message.content
    return "".join(chunk.delta or "" for chunk in model.stream_chat(given))


scenarios.chat(ask)
scenarios.end()
