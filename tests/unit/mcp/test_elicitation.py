"""Questions of servers to people, read from results of calls."""

import asyncio
from typing import Any

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.react.input_forms import (
    InputField,
    InputForm,
    InputReply,
    InputResponse,
)
from internal.mcp.elicitation import (
    DECLINED_KEY,
    OpenCalls,
    Progress,
    read_input_request,
    requires_input,
)


def result(state: str | None = "s", **params: Any) -> dict[str, Any]:
    given = {"mode": "form", "message": "M", **params}
    request = {"method": "elicitation/create", "params": given}
    return {"resultType": "input_required", "inputRequests": {"k": request}, "requestState": state}


def form(properties: Any, *required: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return result(requestedSchema=schema)


def fields(properties: Any, *required: str) -> tuple[InputField, ...]:
    (found,) = read_input_request("s", form(properties, *required)).forms
    return found.fields


def test_every_kind_of_value_is_read() -> None:
    read = fields(
        {
            "a": {
                "type": "string",
                "title": "A",
                "minLength": 1,
                "format": "email",
            },
            "b": {"type": "integer", "minimum": 1, "maximum": 4, "default": 2},
            "c": {"type": "boolean", "default": False},
            "d": {"type": "string", "enum": ["x", "y"], "enumNames": ["X", "Y"], "default": "y"},
            "e": {"type": "string", "oneOf": [{"const": "x", "title": "The x"}]},
            "f": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "maxItems": 1},
            "g": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "The x"}]}},
            "h": {"type": "number", "default": "wrong"},
        },
        "a",
    )
    assert read == (
        InputField("a", "text", "A", required=True, minimum=1, format="email"),
        InputField("b", "integer", "b", default=2, minimum=1, maximum=4),
        InputField("c", "boolean", "c", default=False),
        InputField("d", "choice", "d", default="y", values=("x", "y"), labels=("X", "Y")),
        InputField("e", "choice", "e", values=("x",), labels=("The x",)),
        InputField("f", "choices", "f", values=("x",), labels=("x",), maximum=1),
        InputField("g", "choices", "g", values=("x",), labels=("The x",)),
        InputField("h", "number", "h"),
    )


def test_texts_show_what_is_hidden_and_values_stay_as_they_are() -> None:
    properties = {"\u202ea": {"type": "string", "enum": ["\x1b[1mx"], "description": "d\u200b"}}
    (one,) = fields(properties)
    assert (one.name, one.values) == ("\u202ea", ("\x1b[1mx",))
    assert (one.label, one.labels, one.description) == (
        "\\u202ea",
        ("\\u001b[1mx",),
        "d\\u200b",
    )


def test_the_state_and_the_server_are_kept() -> None:
    found = read_input_request("s", result("opaque"))
    assert (found.source, found.state) == ("The MCP server “s”", "opaque")
    assert found.forms == (InputForm("k", "M"),)
    assert requires_input(result())
    assert not requires_input({"content": []})


def test_an_address_is_read() -> None:
    found = read_input_request("s", result(mode="url", url="https://a.b/c?d=e"))
    assert found.forms == (InputForm("k", "M", url="https://a.b/c?d=e"),)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (result(mode="url", url="http://a.b"), "no https address"),
        (result(mode="url", url="https://a.b/\u202e"), "no https address"),
        (result(mode="url", url="javascript:alert(1)"), "no https address"),
        (result(mode="voice"), "not known"),
        (result(message=7), "cannot be shown"),
        (result(state="x" * 100_001), "100,000 characters"),
        (result(state="\ud800"), "characters"),
        ({"inputRequests": {}}, "forms"),
        ({"inputRequests": {"k": {"method": "sampling/createMessage"}}}, "sampling/createMessage"),
        (form({str(n): {"type": "string"} for n in range(21)}), "20 values"),
        (form({"a": {"type": "object"}}), "cannot be asked: a"),
        (form({"a": {"type": "array"}}), "cannot be asked: a"),
        (form({"a": {"enum": [str(n) for n in range(201)]}}), "cannot be asked: a"),
        (form({"a" * 201: {"type": "string"}}), "cannot be asked"),
        (form([]), "cannot be shown"),
    ],
)
def test_what_cannot_be_asked_fails_the_call(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        read_input_request("s", wrong)


def name_form(message: str) -> dict[str, Any]:
    return {"message": message, "requestedSchema": {"properties": {"n": {"type": "string"}}}}


async def run(calls: OpenCalls, send: Any, reply: InputReply | None = None) -> dict[str, Any]:
    return await calls.run(
        "key", send, timeout_seconds=20, on_progress=lambda *_: None, reply=reply
    )


def reply(value: str) -> InputReply:
    return InputReply((InputResponse("", "accept", {"n": value}),), None)


async def test_an_open_call_asks_as_often_as_the_server_does() -> None:
    calls = OpenCalls()

    async def send(_report: Progress) -> dict[str, Any]:
        responses = [await calls.ask(name_form(message)) for message in ("First?", "Last?")]
        return {"content": [response.values["n"] for response in responses]}

    first = await run(calls, send)
    assert read_input_request("s", first).forms[0].message == "First?"
    assert calls.is_waiting
    last = await run(calls, send, reply("Ada"))
    assert read_input_request("s", last).forms[0].message == "Last?"
    assert await run(calls, send, reply("Lovelace")) == {"content": ["Ada", "Lovelace"]}
    assert not calls.is_waiting


async def test_closing_ends_open_calls_and_an_answer_is_late() -> None:
    calls, ended = OpenCalls(), []

    async def send(_report: Progress) -> dict[str, Any]:
        try:
            await calls.ask(name_form("?"))
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return {}

    await run(calls, send)
    await calls.close()
    assert ended == ["cancelled"]
    with pytest.raises(ToolError, match="outcome of the call is unknown"):
        await run(calls, send, reply("late"))


async def test_what_cannot_be_asked_is_declined_during_the_call() -> None:
    calls = OpenCalls()

    async def send(_report: Progress) -> dict[str, Any]:
        return {"action": (await calls.ask({"message": "?", "mode": "voice"})).action}

    assert await run(calls, send) == {
        "action": "decline",
        DECLINED_KEY: ["the server asks people in a way that is not known"],
    }
