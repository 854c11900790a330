"""What servers ask people, read from results of calls."""

from typing import Any

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.react.input_forms import InputField, InputForm
from internal.mcp.elicitation import read_input_request, requires_input


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
