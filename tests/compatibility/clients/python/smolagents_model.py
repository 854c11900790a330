# client: smolagents
# registry: PyPI
# packages: smolagents[openai]==1.26.0
# door: chat
import scenarios
from smolagents import OpenAIServerModel, tool


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: one
        b: another
    """
    return a + b


def ask(messages, *, stream, tools, key):
    model = OpenAIServerModel(model_id=scenarios.MODEL, api_base=scenarios.BASE_URL, api_key=key)
    if stream:
        return "".join(piece.content or "" for piece in model.generate_stream(messages))
    further = {"tools_to_call_from": [add], "tool_choice": "auto"} if tools else {}
    return model.generate(messages, **further).content


scenarios.chat(ask)
scenarios.end()
