# client: google-adk
# registry: PyPI
# packages: google-adk==2.13.0 litellm==1.110.2
# door: chat
import asyncio

import scenarios
from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def parts(content):
    if isinstance(content, str):
        return [types.Part.from_text(text=content)]
    image = types.Part.from_bytes(data=scenarios.png(), mime_type="image/png")
    return [types.Part.from_text(text=content[0]["text"]), image]


async def answer(messages, tools, key):
    model = LiteLlm(f"openai/{scenarios.MODEL}", api_base=scenarios.BASE_URL, api_key=key)
    system = [each["content"] for each in messages if each["role"] == "system"]
    agent = LlmAgent(
        name="a", model=model, instruction=system[0] if system else "", tools=[add] if tools else []
    )
    runner = InMemoryRunner(agent, app_name="compatibility")
    session = await runner.session_service.create_session(app_name="compatibility", user_id="u")
    text = ""
    # Its sessions hold the history: each message of the person is a turn.
    for message in messages:
        if message["role"] != "user":
            continue
        given = types.Content(role="user", parts=parts(message["content"]))
        found = runner.run_async(user_id="u", session_id=session.id, new_message=given)
        async for event in found:
            if event.is_final_response() and event.content:
                text = "".join(part.text or "" for part in event.content.parts)
            if event.error_message:
                raise RuntimeError(event.error_message)
    return text


async def conversation(key):
    messages = [scenarios.user(scenarios.prompt(each)) for each in ("write", "plain", "read")]
    return await answer(messages, None, key)


def ask(messages, *, stream, tools, key):
    return asyncio.run(answer(messages, tools, key))


scenarios.chat(
    ask,
    without={
        "stream": "not tried",
        "history": "tried as one conversation below",
        "system": "its instructions hold more than the text",
    },
)
scenarios.attempt("history", lambda: asyncio.run(conversation(scenarios.KEY)))
scenarios.end()
