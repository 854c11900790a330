# client: agno
# registry: PyPI
# packages: agno==3.1.10 openai==3.57.0
# door: chat
import scenarios
from agno.agent import Agent
from agno.media import Image
from agno.models.message import Message
from agno.models.openai.like import OpenAILike


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def ask(messages, *, stream, tools, key):
    model = OpenAILike(id=scenarios.MODEL, base_url=scenarios.BASE_URL, api_key=key)
    system = [each["content"] for each in messages if each["role"] == "system"]
    spoken = [each for each in messages if each["role"] != "system"]
    agent = Agent(
        model=model,
        system_message=system[0] if system else None,
        tools=[add] if tools else None,
        telemetry=False,
    )
    content = spoken[-1]["content"]
    if isinstance(content, str):
        given = [Message(**message) for message in spoken]
    else:
        given = [
            Message(
                role="user", content=content[0]["text"], images=[Image(content=scenarios.png())]
            )
        ]
    if stream:
        return "".join(each.content or "" for each in agent.run(given, stream=True))
    found = agent.run(given)
    if str(getattr(found, "status", "")).endswith("error"):
        raise RuntimeError(found.content)
    return found.content


scenarios.chat(ask)
scenarios.end()
