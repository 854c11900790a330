"""Streams that break, through real sockets: an error, never part of an answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from internal.agent.domain.errors import ModelUnavailable, ModelUnreachable
from internal.agent.domain.messages import Part, Text, ToolCall, user_message
from internal.agent.ports.llm import ModelRequest, ModelResponse, TextDelta
from internal.llm.anthropic import AnthropicModel
from internal.llm.errors import ProviderInfo
from internal.llm.openai import OpenAIModel, Service
from internal.llm.retry import ProviderClient
from internal.llm.transport import ApiKey
from tests.support import anthropic_server, openai_server
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Fault, Reply, ScriptedServer

WHOLE = Reply(text="é 😀", calls=[Call("look", {"at": "x"}, id="call_1")])
PARTS: tuple[Part, ...] = (Text("é 😀"), ToolCall("call_1", "look", {"at": "x"}))
Script = Callable[[dict[str, Any]], Reply] | list[Reply]
WIRES = pytest.mark.parametrize("wire", ["anthropic", "openai"])


def anthropic_client(server: ScriptedServer, silence_seconds: float) -> ProviderClient:
    return AnthropicModel(ApiKey("k"), base_url=server.base_url, silence_seconds=silence_seconds)


def openai_client(server: ScriptedServer, silence_seconds: float) -> ProviderClient:
    service = Service("acme", ProviderInfo("Acme", "ACME_API_KEY"), server.base_url)
    return OpenAIModel(
        service, ApiKey("k"), base_url=server.base_url, silence_seconds=silence_seconds
    )


@asynccontextmanager
async def client_of(
    wire: str, script: Script, *, silence_seconds: float = 20.0
) -> AsyncIterator[ProviderClient]:
    server: ScriptedServer
    if wire == "anthropic":
        server, connect = ScriptedAnthropic(script), anthropic_client
    else:
        server, connect = ScriptedOpenAI(script), openai_client
    async with server:
        client = connect(server, silence_seconds)
        try:
            yield client
        finally:
            await client.close()


def length_of(wire: str) -> int:
    """Return how many bytes the stream of `WHOLE` has."""
    module = anthropic_server if wire == "anthropic" else openai_server
    request = {"model": "m", "stream_options": {"include_usage": True}}
    return len(b"".join(module.answer_to(WHOLE, request, b"x" * 400).events()))


async def reply_to(client: ProviderClient, text: str) -> tuple[str, ModelResponse]:
    shown = ""
    async for piece in client.stream(ModelRequest("m", "", (user_message(text),))):
        if isinstance(piece, ModelResponse):
            return shown, piece
        assert isinstance(piece, TextDelta)
        shown += piece.text
    raise AssertionError("the stream had no response")


def _asked(request: dict[str, Any]) -> str:
    content = request["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


@WIRES
@pytest.mark.parametrize(
    "clean",
    [pytest.param(True, id="ended", marks=pytest.mark.slow), pytest.param(False, id="aborted")],
)
@pytest.mark.slow
async def test_a_stream_cut_at_any_byte_is_whole_or_an_error(wire: str, clean: bool) -> None:
    def cut(request: dict[str, Any]) -> Reply:
        fault = Fault("cut_after_bytes", bytes=int(_asked(request)), clean=clean)
        return Reply(text=WHOLE.text, calls=WHOLE.calls, fault=fault)

    cuts, failed = asyncio.Queue[int](), list[int]()
    for at in range(length_of(wire) + 1):
        cuts.put_nowait(at)
    whole: list[int] = []
    async with client_of(wire, cut) as client:

        async def try_cuts() -> None:
            while not cuts.empty():
                at = cuts.get_nowait()
                try:
                    _, reply = await reply_to(client, str(at))
                except ModelUnreachable:
                    failed.append(at)
                else:
                    assert reply.parts == PARTS
                    assert reply.stop == "tools"
                    whole.append(at)

        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(try_cuts())
    assert len(failed) + len(whole) == length_of(wire) + 1
    assert set(range(length_of(wire) // 2)) <= set(failed)
    if clean:  # an abort may overtake the bytes before it
        assert max(failed) < min(whole)


@WIRES
@pytest.mark.parametrize("noise", [None, "5\r\nda", "zz\r\n\r\n", "<html>500</html>\r\n"])
async def test_a_stream_that_turns_to_garbage_ends_with_an_error(
    wire: str, noise: str | None
) -> None:
    fault = Fault("garbage_in_stream", after_pieces=1, body=noise)
    script = [Reply(text="a b", pieces=2, fault=fault)]
    async with (
        asyncio.timeout(30),
        client_of(wire, script, silence_seconds=0.3) as client,
    ):
        with pytest.raises(ModelUnreachable):
            await reply_to(client, "hi")


@WIRES
async def test_a_page_instead_of_a_stream_is_an_error_at_once(wire: str) -> None:
    fault = Fault("garbage", body="<!DOCTYPE html>\n<html>Sign in to the network</html>\n")
    async with client_of(wire, [Reply(fault=fault)]) as client:
        with pytest.raises(ModelUnreachable, match="valid response"):
            await reply_to(client, "hi")


@WIRES
async def test_an_end_mark_alone_is_no_answer(wire: str) -> None:
    mark = 'data: {"type": "message_stop"}\n\n' if wire == "anthropic" else "data: [DONE]\n\n"
    async with client_of(wire, [Reply(fault=Fault("garbage", body=mark))]) as client:
        with pytest.raises(ModelUnavailable):
            await reply_to(client, "hi")


def _halves(wire: str) -> str:
    """Return a stream in which the halves of a character come in two deltas each."""
    call = '{\\"at\\": \\"\\ud83d', '\\ude00\\"}'
    if wire == "anthropic":
        at = '"type": "content_block_%s", "index": %d'
        deltas = (
            at % ("start", 0) + ', "content_block": {"type": "text"}',
            at % ("delta", 0) + ', "delta": {"type": "text_delta", "text": "a\\ud83d"}',
            at % ("delta", 0) + ', "delta": {"type": "text_delta", "text": "\\ude00b"}',
            at % ("start", 1) + ', "content_block": {"type": "tool_use", "id": "1", "name": "n"}',
            *(
                at % ("delta", 1)
                + f', "delta": {{"type": "input_json_delta", "partial_json": "{half}"}}'
                for half in call
            ),
            '"type": "message_delta", "delta": {"stop_reason": "tool_use"}',
            '"type": "message_stop"',
        )
    else:
        tool = (
            '"tool_calls": [{"index": 0, "id": "1", "function": {"name": "n", "arguments": "%s"}}]'
        )
        choice = '"choices": [{"delta": {%s}}]'
        deltas = (
            choice % '"content": "a\\ud83d"',
            choice % '"content": "\\ude00b"',
            *(choice % (tool % half) for half in call),
            '"choices": [{"delta": {}, "finish_reason": "tool_calls"}]',
        )
    return "".join(f"data: {{{delta}}}\n\n" for delta in deltas)


@WIRES
async def test_a_character_split_over_two_deltas_stays_whole(wire: str) -> None:
    fault = Fault("garbage", body=_halves(wire))
    async with client_of(wire, [Reply(fault=fault)]) as client:
        shown, reply = await reply_to(client, "hi")
    assert shown == "a😀b"
    assert reply.parts == (Text("a😀b"), ToolCall("1", "n", {"at": "😀"}))


@WIRES
@pytest.mark.parametrize("size", [1, 2, 3])
async def test_a_character_split_over_two_chunks_stays_whole(wire: str, size: int) -> None:
    async with client_of(wire, [Reply(text="é😀中" * 3, pieces=2, chunks=[size])]) as client:
        shown, reply = await reply_to(client, "hi")
    assert shown == "é😀中" * 3
    assert reply.parts == (Text(shown),)


@WIRES
@pytest.mark.parametrize("count", [-5, 2**53, 2**63, 10**30])
async def test_an_impossible_token_count_is_ignored(wire: str, count: int) -> None:
    names = (
        ("input_tokens", "output_tokens")
        if wire == "anthropic"
        else (
            "prompt_tokens",
            "completion_tokens",
        )
    )
    usage = {names[0]: 7, names[1]: count}
    async with client_of(wire, [Reply(text="hi", usage=usage)]) as client:
        _, reply = await reply_to(client, "hi")
    assert reply.usage.input_tokens == 7
    assert reply.usage.output_tokens in {0, 1}  # the count at the start of the stream stays
