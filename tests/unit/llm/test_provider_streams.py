"""Recorded streams of each provider, and the requests for them.

`streams/NAME.sse` is a reply in the form in which the provider sends it: reasoning, text, a call
and token counts. Fields follow the references that `internal/model_providers` names.
"""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from internal.agent.domain.messages import Text, Thinking, ToolCall, user_message
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelRequest, ModelResponse, TextDelta
from internal.llm.model_factory import build_model
from internal.model_providers.registry import PROVIDERS, find_provider
from internal.settings.llm import LlmSettings
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.openai_server import Manners, ScriptedOpenAI
from tests.support.scripted_model import Fault, Reply, ScriptedServer

STREAMS = Path(__file__).parent / "streams"
TOOL = ToolSpec(
    "list_dir",
    "Lists a folder.",
    {"type": "object", "properties": {"path": {"type": "string"}}},
    "read",
)
THOUGHT = "The person wants a list."
ENGLISH, CHINESE = "I will look at the folder.", "我看一下文件夹。"
ALWAYS = {"model", "messages", "stream", "tools"}
COUNTED = {*ALWAYS, "stream_options"}


class Row(NamedTuple):
    """Expected reply and request fields. `thinking` holds the fields of the level `low`."""

    call_id: str
    usage: Usage
    fields: set[str]
    thinking: dict[str, Any]
    text: str = ENGLISH
    thought: str = THOUGHT


def used(input_: int, output: int, read: int = 0, written: int = 0) -> Usage:
    return Usage(input_, output, read, written)


LOW = {"reasoning_effort": "low"}
ROWS = {
    "anthropic": Row(
        "toolu_01T1x1fJ34qAmk2tNTrN7Up6",
        used(12, 88, 1100, 140),
        {"model", "max_tokens", "stream", "messages", "system", "tools", "thinking"},
        {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "low"},
        },
    ),
    "openai": Row(
        "call_V0b1yQhI4q0q3tqHn8c5kR2w",
        used(286, 27, 1024),
        {*COUNTED, "max_completion_tokens", "temperature"},
        LOW,
        thought="",
    ),
    "ark": Row(
        "call_a1b2c3d4e5f6g7h8i9j0k1l2",
        used(1204, 58),
        {*COUNTED, "max_tokens", "temperature"},
        {"thinking": {"type": "enabled"}},
        CHINESE,
    ),
    "deepseek": Row(
        "call_00_o1Yk3WmA7cJxT5dHqB2vNs9L",
        used(163, 74, 1024),
        {*COUNTED, "max_tokens", "temperature"},
        {"thinking": {"type": "enabled"}, "reasoning_effort": "low"},
    ),
    "openrouter": Row(
        "toolu_01D7FLrfh4GYq7yT1ULFeyMV",
        used(1400, 80),
        {*COUNTED, "max_tokens", "temperature"},
        {"reasoning": {"effort": "low"}},
    ),
    "qwen": Row(
        "call_3f1c2d9b8a7e4d5f9c0b1a",
        used(739, 66, 512),
        {*COUNTED, "max_tokens", "temperature"},
        {"enable_thinking": True, "thinking_budget": 2_048},
        CHINESE,
    ),
    "kimi": Row(
        "list_dir:0",
        used(465, 61, 768),
        {*COUNTED, "max_completion_tokens"},
        LOW,
        CHINESE,
    ),
    "glm": Row(
        "call_-8154207716093241098",
        used(1123, 52, 43),
        {*ALWAYS, "max_tokens", "temperature"},
        LOW,
        CHINESE,
    ),
    "minimax": Row(
        "call_function_5rm2kx8q1d0c_1",
        used(1097, 65, 128),
        {*COUNTED, "max_completion_tokens", "temperature"},
        LOW,
        CHINESE,
    ),
    "gemini": Row(
        "function-call-8471135264901733420",
        used(1190, 68),
        {*COUNTED, "max_tokens", "temperature"},
        LOW,
        thought="",
    ),
    "mistral": Row(
        "D681PevKs",
        used(1090, 51),
        {*ALWAYS, "max_tokens", "temperature"},
        {"reasoning_effort": "high"},
    ),
    "xai": Row(
        "call_50173522",
        used(1110, 88, 192),
        {*COUNTED, "max_completion_tokens", "temperature"},
        LOW,
    ),
    "azure": Row(
        "call_9vWzN2p0",
        used(286, 27, 1024),
        {*COUNTED, "max_completion_tokens", "temperature"},
        LOW,
        thought="",
    ),
    "ollama": Row("call_wd3k8fja", used(998, 47), {*COUNTED, "max_tokens", "temperature"}, LOW),
}


def make_server(name: str, replies: list[Reply], fields: tuple[str, ...] = ()) -> ScriptedServer:
    if name == "anthropic":
        return ScriptedAnthropic(replies)
    provider = find_provider(name)
    header = str(getattr(provider, "key_header", ""))
    manners = Manners(no_key=name == "ollama", key_header=header, fields=fields)
    return ScriptedOpenAI(replies, manners=manners)


async def ask(name: str, server: ScriptedServer, **settings: Any) -> tuple[str, ModelResponse]:
    provider = find_provider(name)
    assert provider is not None
    given = {"provider": name, "base_url": server.base_url, "max_retries": 0, **settings}
    if name != "ollama":
        given["api_key"] = "k"
    model = build_model(LlmSettings.model_validate(given))
    request = ModelRequest(
        provider.default_model,
        "be brief",
        (user_message("list the files"),),
        tools=(TOOL,),
        temperature=0.3,
    )
    *pieces, reply = [piece async for piece in model.stream(request)]
    await model.close()
    assert isinstance(reply, ModelResponse)
    shown = "".join(p.text for p in pieces if isinstance(p, TextDelta) and not p.reasoning)
    return shown, reply


def recorded(name: str) -> Reply:
    body = (STREAMS / f"{name}.sse").read_text(encoding="utf-8")
    return Reply(fault=Fault("garbage", body=body))


@pytest.mark.parametrize("name", ROWS)
async def test_the_stream_of_a_provider_is_read(name: str) -> None:
    row = ROWS[name]
    async with make_server(name, [recorded(name)]) as server:
        shown, reply = await ask(name, server)
        assert set(server.requests[0]) == row.fields
    text = "".join(part.text for part in reply.parts if isinstance(part, Text))
    thought = "".join(part.text for part in reply.parts if isinstance(part, Thinking))
    (call,) = [part for part in reply.parts if isinstance(part, ToolCall)]
    assert (text.strip(), thought.strip(), shown.strip()) == (row.text, row.thought, row.text)
    assert replace(call, opaque=None) == ToolCall(row.call_id, "list_dir", {"path": "docs"})
    assert reply.usage == row.usage
    assert reply.stop == "tools"


@pytest.mark.parametrize("name", ROWS)
async def test_thinking_is_told_in_the_words_of_a_provider(name: str) -> None:
    row = ROWS[name]
    async with make_server(name, [recorded(name)], tuple(row.thinking)) as server:
        await ask(name, server, thinking="low")
        (sent,) = server.requests
    assert {field: sent[field] for field in row.thinking} == row.thinking
    assert set(sent) == {*row.fields, *row.thinking}


def test_every_provider_has_a_recorded_stream() -> None:
    own_tests = {"bedrock", "vertex", "foundry", "offline"}  # test_cloud_claude.py
    assert set(ROWS) == {provider.name for provider in PROVIDERS} - own_tests
    assert {file.stem for file in STREAMS.iterdir()} == set(ROWS)
