# client: magentic
# registry: PyPI
# packages: magentic==0.41.1
# door: chat
import scenarios
from magentic import AssistantMessage, StreamedStr, SystemMessage, UserMessage
from magentic.chat_model.openai_chat_model import OpenaiChatModel
from magentic.vision import UserImageMessage

KINDS = {"user": UserMessage, "assistant": AssistantMessage, "system": SystemMessage}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def converted(message):
    content = message["content"]
    if isinstance(content, str):
        return [KINDS[message["role"]](content)]
    return [UserImageMessage(scenarios.png()), UserMessage(content[0]["text"])]


def ask(messages, *, stream, tools, key):
    model = OpenaiChatModel(scenarios.MODEL, base_url=scenarios.BASE_URL, api_key=key)
    given = [each for message in messages for each in converted(message)]
    further = {"functions": [add]} if tools else {}
    if stream:
        return "".join(model.complete(given, output_types=[StreamedStr]).content)
    return model.complete(given, output_types=[str], **further).content


scenarios.chat(ask)
scenarios.end()
