"""Requests equal the providers' own SDKs' requests for the same call, recorded by local servers.

An update of an SDK that changes a header or a field shows here; mypy compares the calls with the
types of the SDKs as well.
"""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from pydantic import SecretStr

from internal.agent.domain.messages import (
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.audio import Recording
from internal.agent.ports.llm import ModelRequest
from internal.audio.transcription import TranscriptionClient
from internal.llm.anthropic import ADDRESS, AnthropicModel
from internal.llm.errors import ProviderInfo
from internal.llm.openai import OpenAIModel, Service
from internal.llm.retry import ProviderClient
from internal.llm.transport import ApiKey
from internal.model_providers.dialect import Dialect
from internal.model_providers.registry import OpenAICompatible, find_provider
from internal.settings.settings import TranscriptionSettings
from tests.support import recordings
from tests.support.anthropic_server import ScriptedAnthropic, signature_of
from tests.support.images import an_image, in_base64
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Reply, ScriptedServer
from tests.support.transcription_server import Spoken, TranscriptionServer

if TYPE_CHECKING:
    from anthropic.types.message_create_params import MessageCreateParamsStreaming
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

KEY = "sk-conformance-0123456789"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"at": {"type": "string"}}}
LOOK = ToolSpec("look", "Look at a thing.", SCHEMA, "read")
PNG = b"\x89PNG heron"
PICTURE = base64.b64encode(PNG).decode()
THOUGHT = "What would they want?"
CALL = ToolCall("call_1", "look", {"at": "你好"})
ASKED = (user_message("hi"), Message("assistant", (Text("Let me look."), CALL)))

# headers about the SDKs themselves, and headers of a single connection
_OTHER_HEADERS = ("user-agent", "accept-encoding", "connection", "host", "content-length")


def compared_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name not in _OTHER_HEADERS and not name.startswith("x-stainless-")
    }


async def ask(model: ProviderClient, request: ModelRequest) -> None:
    _ = [piece async for piece in model.stream(request)]
    await model.close()


def assert_same_request(server: ScriptedServer) -> None:
    ours, theirs = server.requests
    assert ours == theirs
    assert compared_headers(server.headers[0]) == compared_headers(server.headers[1])
    assert server.headers[0]["host"] == server.headers[1]["host"]


ANTHROPIC: dict[str, tuple[ModelRequest, "MessageCreateParamsStreaming"]] = {
    "text": (
        ModelRequest("claude-x", "", (user_message("hi 😀"),), max_output_tokens=100),
        {
            "model": "claude-x",
            "max_tokens": 100,
            "stream": True,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "hi 😀", "cache_control": {"type": "ephemeral"}}
                    ],
                }
            ],
        },
    ),
    "system, tools, results and images": (
        ModelRequest(
            "claude-x",
            "be brief",
            (
                *ASKED,
                Message(
                    "user",
                    (
                        ToolResult("call_1", "seen", images=(an_image(PNG),)),
                        an_image(PNG),
                        Text("and now?"),
                    ),
                ),
            ),
            tools=(LOOK, replace(LOOK, name="see")),
            tool_choice="none",
            images=in_base64([PNG]),
        ),
        {
            "model": "claude-x",
            "max_tokens": 8_192,
            "stream": True,
            "system": [
                {"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}
            ],
            "tools": [
                {"name": "look", "description": "Look at a thing.", "input_schema": SCHEMA},
                {
                    "name": "see",
                    "description": "Look at a thing.",
                    "input_schema": SCHEMA,
                    "cache_control": {"type": "ephemeral"},
                },
            ],
            "tool_choice": {"type": "none"},
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "Let me look."},
                        {
                            "type": "tool_use",
                            "id": "call_1",
                            "name": "look",
                            "input": {"at": "你好"},
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "call_1",
                            "content": [
                                {"type": "text", "text": "seen"},
                                {
                                    "type": "image",
                                    "source": {
                                        "type": "base64",
                                        "media_type": "image/png",
                                        "data": PICTURE,
                                    },
                                },
                            ],
                        },
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": PICTURE,
                            },
                        },
                        {
                            "type": "text",
                            "text": "and now?",
                            "cache_control": {"type": "ephemeral"},
                        },
                    ],
                },
            ],
        },
    ),
    "thinking and a failed call": (
        ModelRequest(
            "claude-opus-5-5",
            "",
            (
                user_message("hi"),
                Message(
                    "assistant",
                    (
                        Thinking(THOUGHT, signature=signature_of(THOUGHT)),
                        Thinking("", redacted="b3BhcXVl"),
                        CALL,
                    ),
                ),
                Message("user", (ToolResult("call_1", "no such thing", failed=True),)),
            ),
        ),
        {
            "model": "claude-opus-5-5",
            "max_tokens": 8_192,
            "stream": True,
            "thinking": {"type": "adaptive", "display": "summarized"},
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "thinking",
                            "thinking": THOUGHT,
                            "signature": signature_of(THOUGHT),
                        },
                        {"type": "redacted_thinking", "data": "b3BhcXVl"},
                        {
                            "type": "tool_use",
                            "id": "call_1",
                            "name": "look",
                            "input": {"at": "你好"},
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "call_1",
                            "content": "no such thing",
                            "is_error": True,
                            "cache_control": {"type": "ephemeral"},
                        }
                    ],
                },
            ],
        },
    ),
}


@pytest.mark.parametrize("feature", ANTHROPIC)
async def test_a_request_equals_that_of_the_anthropic_sdk(feature: str) -> None:
    import anthropic  # noqa: PLC0415 - slow to import, and collected in every worker

    request, params = ANTHROPIC[feature]
    async with ScriptedAnthropic(lambda _: Reply(text="ok"), api_key=KEY) as server:
        await ask(AnthropicModel(ApiKey(KEY), base_url=server.base_url), request)
        async with anthropic.AsyncAnthropic(
            api_key=KEY, base_url=server.base_url, max_retries=0
        ) as client:
            async for _ in await client.messages.create(**params):
                pass
        assert_same_request(server)


OPENAI: dict[str, tuple[ModelRequest, Dialect, "CompletionCreateParamsStreaming"]] = {
    "text": (
        ModelRequest("m", "be brief", (user_message("hi 😀"),), max_output_tokens=100),
        Dialect(count_tokens=False),
        {
            "model": "m",
            "max_tokens": 100,
            "stream": True,
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hi 😀"},
            ],
        },
    ),
    "tools, results, images, effort and temperature": (
        ModelRequest(
            "m",
            "",
            (
                *ASKED,
                Message("user", (ToolResult("call_1", "seen"), an_image(PNG), Text("and now?"))),
            ),
            tools=(LOOK,),
            tool_choice="none",
            temperature=0.25,
            images=in_base64([PNG]),
        ),
        Dialect(limit_field="max_completion_tokens", effort="none"),
        {
            "model": "m",
            "max_completion_tokens": 8_192,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0.25,
            "reasoning_effort": "none",
            "tool_choice": "none",
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "look",
                        "description": "Look at a thing.",
                        "parameters": SCHEMA,
                    },
                }
            ],
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": "Let me look.",
                    "tool_calls": [
                        {
                            "type": "function",
                            "id": "call_1",
                            "function": {"name": "look", "arguments": '{"at":"你好"}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "seen"},
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "image_url",
                            "image_url": {"url": f"data:image/png;base64,{PICTURE}"},
                        },
                        {"type": "text", "text": "and now?"},
                    ],
                },
            ],
        },
    ),
}


@pytest.mark.parametrize("feature", OPENAI)
async def test_a_request_equals_that_of_the_openai_sdk(feature: str) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    request, dialect, params = OPENAI[feature]
    async with ScriptedOpenAI(lambda _: Reply(text="ok"), api_key=KEY) as server:
        service = Service("acme", ProviderInfo("Acme", "ACME_API_KEY"), server.base_url, dialect)
        await ask(OpenAIModel(service, ApiKey(KEY)), request)
        async with openai.AsyncOpenAI(
            api_key=KEY, base_url=server.base_url, max_retries=0
        ) as client:
            async for _ in await client.chat.completions.create(**params):
                pass
        assert_same_request(server)


async def test_a_recording_is_sent_as_by_the_openai_sdk() -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    voice = recordings.ogg_opus(1.0)
    async with TranscriptionServer(Spoken("hi"), api_key=KEY) as server:
        settings = TranscriptionSettings(
            model="whisper-1", base_url=server.base_url, api_key=SecretStr(KEY), language="zh"
        )
        ours = TranscriptionClient(settings, "whisper-1")
        await ours.transcribe(voice, Recording("audio/ogg", "ogg", 1.0))
        await ours.close()
        async with openai.AsyncOpenAI(
            api_key=KEY, base_url=server.base_url, max_retries=0
        ) as client:
            await client.audio.transcriptions.create(
                file=("recording.ogg", voice, "audio/ogg"),
                model="whisper-1",
                response_format="json",
                language="zh",
            )
        one, other = server.requests
    assert one[:4] == other[:4]
    sent = [compared_headers(each.headers) for each in (one, other)]
    types = [headers.pop("content-type").partition(";")[0] for headers in sent]
    assert types == ["multipart/form-data"] * 2
    assert sent[0] == sent[1]


async def test_the_addresses_are_those_of_the_sdks() -> None:
    import anthropic  # noqa: PLC0415 - slow to import, and collected in every worker
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    provider = find_provider("openai")
    assert isinstance(provider, OpenAICompatible)
    async with anthropic.AsyncAnthropic(api_key=KEY) as client:
        assert str(client.base_url).rstrip("/") == ADDRESS
    async with openai.AsyncOpenAI(api_key=KEY) as other:
        assert str(other.base_url).rstrip("/") == provider.base_url
