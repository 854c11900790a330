"""The stand-in for OpenAI and its followers is true to the protocol: the SDK can read it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.support.openai_server import Manners, ScriptedOpenAI, check_request
from tests.support.scripted_model import Call, Fault, Refusal, Reply, When

if TYPE_CHECKING:
    from openai import AsyncOpenAI

HEADERS = {"authorization": "Bearer k"}
HELLO = {"role": "user", "content": "hello"}
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "d", "parameters": {"type": "object"}},
}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
USE = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "seen"}
PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages or [HELLO]), **fields}


def used(**changed: Any) -> dict[str, Any]:
    return {**USE, "tool_calls": [{**CALL, **changed}]}


GOOD = [
    body(),
    body({"role": "system", "content": "be brief"}, HELLO, stream=True),
    body(HELLO, USE, RESULT, HELLO, tools=[TOOL], tool_choice="none", max_tokens=5),
    body({"role": "user", "content": [PNG, {"type": "text", "text": "what?"}]}),
    body(stream=True, stream_options={"include_usage": True}, max_completion_tokens=5),
    body(temperature=0.3, tools=[TOOL], reasoning_effort="none"),
]
BAD = {
    "no messages": {"model": "m", "messages": []},
    "no model": {"messages": [HELLO]},
    "unknown field": body(colour="red"),
    "both limits": body(max_tokens=1, max_completion_tokens=1),
    "limit is no number": body(max_tokens="many"),
    "usage without a stream": body(stream_options={"include_usage": True}),
    "temperature": body(temperature=3),
    "choice without tools": body(tool_choice="auto"),
    "no tools": body(tools=[]),
    "tool without schema": body(tools=[{"type": "function", "function": {"name": "a"}}]),
    "tool with a bad name": body(
        tools=[{"type": "function", "function": {**TOOL["function"], "name": "a b"}}]  # type: ignore[dict-item]  # it is one
    ),
    "unknown role": body({"role": "developer?", "content": "x"}),
    "late system": body(HELLO, {"role": "system", "content": "x"}),
    "empty content": body({"role": "user", "content": " "}),
    "no content": body({"role": "assistant", "content": None}),
    "foreign field": body({**HELLO, "reasoning_content": "x"}),
    "call unanswered": body(HELLO, USE),
    "call unanswered by the next": body(HELLO, USE, HELLO),
    "result of nothing": body(HELLO, RESULT),
    "result twice": body(HELLO, USE, RESULT, RESULT),
    "long id": body(HELLO, used(id="c" * 41), {**RESULT, "tool_call_id": "c" * 41}),
    "arguments are no object": body(
        HELLO, used(function={"name": "look", "arguments": "[]"}), RESULT
    ),
    "image is no base64": body(
        {"role": "user", "content": [{**PNG, "image_url": {"url": "data:image/png;base64,%%"}}]}
    ),
    "image from elsewhere": body(
        {"role": "user", "content": [{**PNG, "image_url": {"url": "https://x/y.png"}}]}
    ),
}


@pytest.mark.parametrize("request_body", GOOD)
def test_valid_requests_are_accepted_as_by_the_api(request_body: dict[str, Any]) -> None:
    check_request(HEADERS, request_body, Manners())


@pytest.mark.parametrize("request_body", BAD.values(), ids=BAD.keys())
def test_invalid_requests_are_rejected_as_by_the_api(request_body: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refusal:
        check_request(HEADERS, request_body, Manners())
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    ("manners", "request_body", "says"),
    [
        (Manners(limit="max_completion_tokens"), body(max_tokens=5), "Use 'max_completion_tokens'"),
        (Manners(limit="max_tokens"), body(max_completion_tokens=5), "Unrecognized"),
        (Manners(thoughts=True), body(HELLO, USE, RESULT), "reasoning_content"),
        (Manners(no_effort=True), body(tools=[TOOL]), "reasoning_effort"),
        (Manners(no_temperature=True), body(temperature=0.5), "temperature"),
        (
            Manners(no_stream_options=True),
            body(stream=True, stream_options={}),
            "stream_options",
        ),
        (Manners(no_key=True), body(), "no key"),
    ],
)
def test_server_specific_requirements_are_enforced(
    manners: Manners, request_body: dict[str, Any], says: str
) -> None:
    with pytest.raises(Refusal, match=says):
        check_request(HEADERS, request_body, manners)


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}])
def test_the_key_is_checked(headers: dict[str, str]) -> None:
    with pytest.raises(Refusal) as refusal:
        check_request(headers, body(), Manners(), "right")
    assert refusal.value.status == 401


@pytest.fixture
async def server() -> AsyncIterator[ScriptedOpenAI]:
    async with ScriptedOpenAI() as fake:
        yield fake


def client_of(base_url: str) -> "AsyncOpenAI":
    from openai import AsyncOpenAI  # noqa: PLC0415 - slow to import, and collected in every worker

    return AsyncOpenAI(api_key="k", base_url=base_url, max_retries=0)


async def test_the_sdk_reads_its_streams(server: ScriptedOpenAI) -> None:
    call = Call("look", {"at": "你好"})
    server.add(Reply(text="one two 三", pieces=5, thinking="hm", calls=[call], packets="each"))
    text, arguments, stops, usage = "", "", [], None
    async with client_of(server.base_url) as client:
        stream = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                stops.append(choice.finish_reason)
                for piece in choice.delta.tool_calls or ():
                    arguments += (piece.function and piece.function.arguments) or ""
    assert (text, json.loads(arguments), stops[-1]) == ("one two 三", {"at": "你好"}, "tool_calls")
    assert usage is not None
    assert usage.prompt_tokens > 0


async def test_the_sdk_reads_its_messages_and_errors(server: ScriptedOpenAI) -> None:
    from openai import RateLimitError  # noqa: PLC0415 - as above

    server.add(Reply(text="whole"), Reply(fault=Fault("status", status=429, retry_after=3)))
    hello: Any = [{"role": "user", "content": "hi"}]
    async with client_of(server.base_url) as client:
        message = await client.chat.completions.create(model="m", messages=hello)
        assert message.choices[0].message.content == "whole"
        with pytest.raises(RateLimitError) as error:
            await client.chat.completions.create(model="m", messages=hello)
    assert error.value.code == "rate_limit_exceeded"
    assert error.value.response.headers["retry-after"] == "3"


@pytest.mark.slow
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
            *(sys.executable, "-m", "tests.support.openai_server", "--script", str(script)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        address = (await process.stdout.readline()).decode().strip()
        async with client_of(address) as client:
            asked: list[Any] = [[HELLO], [HELLO, USE, RESULT]]
            replies = [
                await client.chat.completions.create(model="m", messages=told) for told in asked
            ]
        answers.append([reply.model_dump_json() for reply in replies])
        process.kill()
        await process.wait()
    assert answers[0] == answers[1]
    first, second = (json.loads(answer)["choices"][0]["message"] for answer in answers[0])
    assert first["tool_calls"][0]["function"]["name"] == "look"
    assert second["content"] == "seen"
