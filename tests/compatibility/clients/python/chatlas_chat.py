# client: chatlas
# registry: PyPI
# packages: chatlas[openai]==0.23.0
# door: chat responses
import scenarios
from chatlas import (
    AssistantTurn,
    ChatOpenAI,
    ChatOpenAICompletions,
    SystemTurn,
    UserTurn,
    content_image_url,
)

KINDS = {"user": UserTurn, "assistant": AssistantTurn, "system": SystemTurn}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def ask(messages, *, stream, tools, key):
    kind = {"chat": ChatOpenAICompletions, "responses": ChatOpenAI}[scenarios.DOOR]
    system = [each["content"] for each in messages if each["role"] == "system"]
    chat = kind(
        model=scenarios.MODEL,
        base_url=scenarios.BASE_URL,
        api_key=key,
        system_prompt=system[0] if system else None,
    )
    spoken = [each for each in messages if each["role"] != "system"]
    turns = [KINDS[each["role"]](each["content"]) for each in spoken[:-1]]
    chat.set_turns([*chat.get_turns(include_system_prompt=False), *turns])
    if tools:
        chat.register_tool(add)
    content = spoken[-1]["content"]
    parts = [content]
    if not isinstance(content, str):
        parts = [content[0]["text"], content_image_url(content[1]["image_url"]["url"])]
    if stream:
        return "".join(chat.stream(*parts))
    return str(chat.chat(*parts, echo="none", stream=False))


scenarios.chat(ask)
scenarios.end()
