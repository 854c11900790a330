"""Changes of a dialect after a refusal."""

from typing import Any

import pytest

from internal.agent.domain.errors import Refusal
from internal.agent.domain.messages import Message, Text, Thinking, ToolResult, user_message
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import ModelRequest
from internal.llm.lessons.changes import Change, apply_fields, find_change
from internal.llm.lessons.prepared_request import prepare_request
from internal.llm.lessons.tool_search import ToolSearch
from internal.model_providers.dialect import Dialect
from tests.support.images import an_image, in_base64

TOOLS = tuple(ToolSpec(n, "", {"type": "object"}, "read") for n in ("look", "mcp__a__b"))
SENT = ModelRequest(
    "m",
    "",
    (
        user_message("hi", [an_image(b"x" * 90)]),
        Message("assistant", (Thinking("hm"),)),
        Message("user", (ToolResult("c1", "seen"), Text("go on"))),
    ),
    tools=TOOLS,
    images=in_base64([b"x" * 90]),
)
PLAIN = ModelRequest("m", "", (user_message("hi"),))


def change(refusal: Refusal, sent: ModelRequest = SENT, **dialect: Any) -> Any:
    known = Dialect(**dialect)
    return find_change(refusal, known, prepare_request(sent, known), size=1_000)


@pytest.mark.parametrize(
    ("refusal", "fields"),
    [
        (Refusal("picture"), {"pictures": False}),
        (Refusal("tools"), {"tools": False}),
        (Refusal("call_id"), {"call_ids": "nine"}),
        (Refusal("field", "temperature"), {"temperature": False}),
        (Refusal("field", change={"effort": "none"}), {"effort": "none"}),
        (Refusal("tool_count"), {"max_tools": 1}),
        (Refusal("tool_name", limit=32), {"max_tool_name": 32}),
        (Refusal("role_order"), {"user_after_results": False}),
        (Refusal("reasoning"), {"resend_opaque": False}),
        (Refusal("output_limit", limit=100), {"max_output_tokens": 100}),
        (Refusal("body_size", limit=900), {"max_body_bytes": 900}),
    ],
)
def test_each_kind_changes_a_field(refusal: Refusal, fields: dict[str, Any]) -> None:
    found = change(refusal)
    assert isinstance(found, Change)
    assert dict(found.fields) == fields


@pytest.mark.parametrize(
    "refusal",
    [
        *(Refusal(kind) for kind in ("picture", "tools", "reasoning", "body_size", "audio")),
        *(Refusal(kind) for kind in ("too_long", "content_filter", "key", "empty_content")),
        Refusal("field", "unheard_of"),
        Refusal("output_limit", limit=99_999),
    ],
)
def test_what_the_request_does_not_have_is_not_changed(refusal: Refusal) -> None:
    assert change(refusal, PLAIN, audio=False) is None


def test_the_name_of_the_limit_changes_both_ways() -> None:
    for now, then in (
        ("max_tokens", "max_completion_tokens"),
        ("max_completion_tokens", "max_tokens"),
    ):
        refusal = Refusal("field", change={"limit_field": now})
        assert change(refusal, limit_field=now).fields == {"limit_field": then}


def test_a_named_or_numbered_tool_is_withheld_and_any_other_searched() -> None:
    for refusal in (Refusal("tool_schema", "mcp__a__b"), Refusal("tool_schema", number=1)):
        assert change(refusal) == Change("tool_schema", {}, "mcp__a__b")
    for refusal in (Refusal("tool_schema"), Refusal("tool_schema", "b", 7)):
        assert change(refusal) == ToolSearch(("mcp__a__b",))


def test_unknown_fields_and_values_change_nothing() -> None:
    assert apply_fields(Dialect(), {"hologram": True}) == Dialect()
    assert apply_fields(Dialect(), {"pictures": "no"}) == Dialect()
