# client: agent-framework
# registry: PyPI
# packages: agent-framework-openai==1.17.0
# door: chat responses
import asyncio

import scenarios
from agent_framework import Agent, Content, Message, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

KINDS = {"chat": OpenAIChatCompletionClient, "responses": OpenAIChatClient}


@tool(approval_mode="never_require")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def converted(message):
    content = message["content"]
    if isinstance(content, str):
        return Message(message["role"], [content])
    image = Content.from_data(data=scenarios.png(), media_type="image/png")
    return Message("user", [Content.from_text(content[0]["text"]), image])


async def answer(messages, stream, tools, key):
    client = KINDS[scenarios.DOOR](model=scenarios.MODEL, base_url=scenarios.BASE_URL, api_key=key)
    system = [each["content"] for each in messages if each["role"] == "system"]
    agent = Agent(
        client, instructions=system[0] if system else None, tools=[add] if tools else None
    )
    given = [converted(each) for each in messages if each["role"] != "system"]
    if not stream:
        return (await agent.run(given)).text
    # Its pieces may replace earlier ones.
    pieces = agent.run(given, stream=True)
    async for _ in pieces:
        pass
    return (await pieces.get_final_response()).text


def ask(messages, *, stream, tools, key):
    return asyncio.run(answer(messages, stream, tools, key))


scenarios.chat(ask)
scenarios.end()
