# client: strands-agents
# registry: PyPI
# packages: strands-agents[openai]==1.62.0
# door: chat
import asyncio

import scenarios
from strands import Agent, tool
from strands.models.openai import OpenAIModel


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def converted(message):
    content = message["content"]
    if isinstance(content, str):
        return {"role": message["role"], "content": [{"text": content}]}
    image = {"image": {"format": "png", "source": {"bytes": scenarios.png()}}}
    return {"role": "user", "content": [{"text": content[0]["text"]}, image]}


def ask(messages, *, stream, tools, key):
    model = OpenAIModel(
        client_args={"base_url": scenarios.BASE_URL, "api_key": key}, model_id=scenarios.MODEL
    )
    system = [each["content"] for each in messages if each["role"] == "system"]
    spoken = [converted(each) for each in messages if each["role"] != "system"]
    agent = Agent(
        model=model,
        messages=spoken[:-1],
        system_prompt=system[0] if system else None,
        tools=[add] if tools else [],
        callback_handler=None,
    )
    prompt = spoken[-1]["content"]
    if not stream:
        return str(agent(prompt)).removesuffix("\n")

    async def pieces():
        return [each["data"] async for each in agent.stream_async(prompt) if "data" in each]

    return "".join(asyncio.run(pieces()))


scenarios.chat(ask)
scenarios.end()
