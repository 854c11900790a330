"""Views of domain objects."""

import msgspec
import pytest

from internal.agent.domain.ids import RunId
from internal.agent.domain.messages import Message, Text, Thinking
from internal.agent.domain.principals import Principal
from internal.channels.web.schemas import CreateSessionRequest, me_view, message_view


def test_a_message_is_shown_without_the_models_thinking() -> None:
    message = Message("assistant", (Thinking("hm"), Text("hello")))
    view = message_view(3, RunId("run-1"), message, "2026-01-01T00:00:00.000Z")
    assert (view.number, view.role) == (3, "assistant")
    assert [part["type"] for part in view.parts] == ["text"]


def test_roles_are_listed_in_a_stable_order() -> None:
    principal = Principal("lark:a:b", "Ada", frozenset({"talk", "operate"}))
    assert me_view(principal, "offline", "demo").roles == ["operate", "talk"]


def test_unknown_fields_are_rejected() -> None:
    with pytest.raises(msgspec.ValidationError, match="colour"):
        msgspec.json.decode(b'{"colour": "red"}', type=CreateSessionRequest)
