# client: mirascope
# registry: PyPI
# packages: mirascope[openai]==2.8.2
# door: chat responses
import scenarios
from mirascope import llm


@llm.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def converted(message):
    content = message["content"]
    match message["role"]:
        case "system":
            return llm.messages.system(content)
        case "assistant":
            return llm.messages.assistant(content, model_id=None, provider_id=None)
        case _ if isinstance(content, str):
            return llm.messages.user(content)
    image = llm.Image.from_bytes(scenarios.png())
    return llm.messages.user([content[0]["text"], image])


def ask(messages, *, stream, tools, key):
    llm.reset_provider_registry()
    llm.register_provider("openai", base_url=scenarios.BASE_URL, api_key=key)
    way = {"chat": "completions", "responses": "responses"}[scenarios.DOOR]
    model = llm.Model(f"openai/{scenarios.MODEL}:{way}")
    given = [converted(message) for message in messages]
    further = {"tools": [add]} if tools else {}
    if not stream:
        return model.call(given, **further).text()
    return "".join(model.stream(given, **further).text_stream())


scenarios.chat(ask)
scenarios.end()
