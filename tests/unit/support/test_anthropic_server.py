"""The stand-in for Anthropic is true to the protocol: the SDK itself reads it, and it checks."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.anthropic_server import (
    Call,
    Fault,
    Refusal,
    Reply,
    Rules,
    ScriptedAnthropic,
    When,
    check_request,
    signature_of,
)

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
HELLO = {"role": "user", "content": "hello"}
USE = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}],
}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "seen"}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "claude-x", "max_tokens": 10, "messages": list(messages or [HELLO]), **fields}


def blocks(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


GOOD = [
    body(),
    body(HELLO, USE, blocks("user", RESULT, text("go on"))),
    body(HELLO, blocks("assistant", text("well")), HELLO, system=[text("be brief")]),
    body(
        HELLO,
        blocks(
            "assistant",
            {"type": "thinking", "thinking": "hm", "signature": signature_of("hm")},
            {"type": "redacted_thinking", "data": "x"},
            *USE["content"],
        ),
        blocks("user", RESULT),
    ),
    body(tools=[{"name": "look", "input_schema": {"type": "object"}}], temperature=0.5),
]

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "%%%"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "forged"}

BAD = {
    "no messages": {"model": "m", "max_tokens": 1, "messages": []},
    "no model": {"max_tokens": 1, "messages": [HELLO]},
    "no limit": {"model": "m", "messages": [HELLO]},
    "limit is no number": body(max_tokens="many"),
    "unknown field": body(colour="red"),
    "assistant first": body(blocks("assistant", text("hi"))),
    "two users": body(HELLO, HELLO),
    "empty text": body(blocks("user", text(""))),
    "blank text": body(blocks("user", text(" \n"))),
    "no content": body(blocks("user")),
    "system without text": body(system=[text("")]),
    "call unanswered": body(HELLO, USE),
    "call unanswered by the next": body(HELLO, USE, HELLO),
    "result of nothing": body(blocks("user", RESULT)),
    "result twice": body(HELLO, USE, blocks("user", RESULT, RESULT)),
    "result after text": body(HELLO, USE, blocks("user", text("x"), RESULT)),
    "trailing space": body(HELLO, blocks("assistant", text("so "))),
    "image is no base64": body(blocks("user", IMAGE)),
    "forged signature": body(HELLO, blocks("assistant", THOUGHT)),
    "call by a user": body(blocks("user", *USE["content"])),
    "unknown block": body(blocks("user", {"type": "smell"})),
    "extra in a block": body(blocks("user", {**text("x"), "colour": "red"})),
    "tool with a bad name": body(tools=[{"name": "a b", "input_schema": {"type": "object"}}]),
    "tool without schema": body(tools=[{"name": "a"}]),
    "two tools of one name": body(tools=[{"name": "a", "input_schema": {"type": "object"}}] * 2),
    "choice without tools": body(tool_choice={"type": "auto"}),
    "five breakpoints": body(
        blocks("user", *([{**text("x"), "cache_control": {"type": "ephemeral"}}] * 5))
    ),
}


@pytest.mark.parametrize("request_body", GOOD)
def test_valid_requests_are_accepted_as_by_the_api(request_body: dict[str, Any]) -> None:
    check_request(HEADERS, request_body)


@pytest.mark.parametrize("request_body", BAD.values(), ids=BAD.keys())
def test_invalid_requests_are_rejected_as_by_the_api(request_body: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refusal:
        check_request(HEADERS, request_body)
    assert (refusal.value.status, refusal.value.error) == (400, None)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"anthropic-version": "2026-10-21"}, 401),
        ({"x-api-key": "wrong", "anthropic-version": "2026-10-21"}, 401),
        ({"x-api-key": "right"}, 400),
        ({"x-api-key": "right", "anthropic-version": "1999-01-01"}, 400),
    ],
)
def test_required_headers_are_checked(headers: dict[str, str], status: int) -> None:
    with pytest.raises(Refusal) as refusal:
        check_request(headers, body(), "right")
    assert refusal.value.status == status


def test_the_new_version_has_no_temperature() -> None:
    headers = {"authorization": "Bearer k", "anthropic-version": "2026-10-21"}
    check_request(headers, body())
    with pytest.raises(Refusal, match="temperature"):
        check_request(headers, body(temperature=1.0))


@pytest.fixture
async def server() -> AsyncIterator[ScriptedAnthropic]:
    async with ScriptedAnthropic() as fake:
        yield fake


async def test_the_sdk_reads_its_streams(server: ScriptedAnthropic) -> None:
    import anthropic  # noqa: PLC0415 - slow to import, and collected in every worker

    call = Call("look", {"at": "你好"})
    server.add(Reply(text="one two 三", pieces=5, thinking="hm", calls=[call], packets="each"))
    async with (
        anthropic.AsyncAnthropic(api_key="k", base_url=server.base_url, max_retries=0) as client,
        client.messages.stream(
            model="claude-x", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        ) as stream,
    ):
        message = await stream.get_final_message()
    kinds = [block.type for block in message.content]
    assert kinds == ["thinking", "text", "tool_use"]
    assert (message.content[1].to_dict()["text"], message.stop_reason) == ("one two 三", "tool_use")
    assert message.content[2].to_dict()["input"] == {"at": "你好"}


async def test_the_sdk_reads_its_messages_and_errors(server: ScriptedAnthropic) -> None:
    import anthropic  # noqa: PLC0415 - as above

    server.add(Reply(text="whole"), Reply(fault=Fault("status", status=429, retry_after=3)))
    hello: Any = [{"role": "user", "content": "hi"}]
    async with anthropic.AsyncAnthropic(
        api_key="k", base_url=server.base_url, max_retries=0
    ) as client:
        message = await client.messages.create(model="m", max_tokens=9, messages=hello)
        assert message.content[0].to_dict()["text"] == "whole"
        with pytest.raises(anthropic.RateLimitError) as error:
            await client.messages.create(model="m", max_tokens=9, messages=hello)
    assert error.value.type == "rate_limit_error"
    assert error.value.response.headers["retry-after"] == "3"


async def _ask(base_url: str, payload: dict[str, Any]) -> bytes:
    host, port = base_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    raw = json.dumps(payload).encode()
    writer.write(
        b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\n"
        b"anthropic-version: 2026-10-21\r\ncontent-length: %d\r\n\r\n%s" % (len(raw), raw)
    )
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    answer = await reader.readexactly(size)
    writer.close()
    await writer.wait_closed()
    return answer


async def test_rules_give_the_same_reply_to_the_same_request_in_every_process(
    tmp_path: Path,
) -> None:
    rules = [
        Reply(calls=[Call("look")], when=When(last_user="hello", results=0)),
        Reply(text="seen", when=When(last_result="seen", results=1)),
    ]
    script = tmp_path / "script.json"
    script.write_bytes(msgspec.json.encode(rules))
    answers = []
    for _ in range(2):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.anthropic_server", "--script", str(script)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        address = (await process.stdout.readline()).decode().strip()
        asked = [body(), body(HELLO, USE, blocks("user", RESULT))]
        answers.append([await _ask(address, one) for one in asked])
        process.kill()
        await process.wait()
    assert answers[0] == answers[1]
    first, second = (json.loads(answer) for answer in answers[0])
    assert first["content"][0]["name"] == "look"
    assert second["content"] == [text("seen")]


async def test_a_fault_is_used_the_stated_number_of_times() -> None:
    rules = Rules([Reply(text="at last", fault=Fault("status", status=529, times=2))])
    async with ScriptedAnthropic(rules) as server:
        kinds = [json.loads(await _ask(server.base_url, body()))["type"] for _ in range(3)]
        assert kinds == ["error", "error", "message"]
        assert server.count == 3
