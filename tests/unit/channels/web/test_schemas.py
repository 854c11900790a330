"""Views of domain objects."""

from pathlib import Path

import msgspec
import pytest

from internal.agent.domain.ids import RunId
from internal.agent.domain.messages import Message, Text, Thinking
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.react.context_window import weigh
from internal.agent.domain.react.history import StoredMessage
from internal.channels.web.schemas import CreateSessionRequest, me_view, message_view, profiles_view
from internal.llm.model_catalog import make_model_book
from internal.settings.llm import LlmSettings
from internal.settings.settings import Settings
from larkspur.task_defaults import open_profiles, task_defaults


def test_a_message_is_shown_without_the_models_thinking() -> None:
    message = Message("assistant", (Thinking("hm"), Text("hello")))
    view = message_view(
        StoredMessage(3, RunId("run-1"), "answer", "2026-01-01T00:00:00.000Z", weigh(message))
    )
    assert (view.number, view.role) == (3, "assistant")
    assert [part["type"] for part in view.parts] == ["text"]


def test_roles_are_listed_in_a_stable_order(tmp_path: Path) -> None:
    principal = Principal("lark:a:b", "Ada", frozenset({"talk", "operate"}))
    settings = Settings()
    book = make_model_book(settings.llm)
    view = me_view(principal, task_defaults(settings, book, open_profiles(tmp_path, book)))
    assert (view.roles, view.permission_mode, view.isolated) == (["operate", "talk"], "ask", False)


def test_only_the_owner_sees_what_is_wrong_with_profiles(tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "odd.yaml").write_text("model: claude-sonet-5-5")
    (folder / "bad.yaml").write_text("role: 5")
    settings = Settings(llm=LlmSettings(provider="anthropic"))
    book = make_model_book(settings.llm)
    known = task_defaults(settings, book, open_profiles(tmp_path, book))
    seen = profiles_view(LOCAL_OWNER, known)
    assert [(each.name, each.problem.partition(":")[0]) for each in seen.problems] == [
        ("bad", str(folder / "bad.yaml"))
    ]
    (warning,) = seen.warnings
    assert warning.name == "odd"
    assert warning.problem.endswith("did you mean claude-sonnet-5-5?")
    other = profiles_view(Principal("lark:a:b", "Ada", frozenset({"talk"})), known)
    assert (other.problems, other.warnings) == ([], [])


def test_unknown_fields_are_rejected() -> None:
    with pytest.raises(msgspec.ValidationError, match="colour"):
        msgspec.json.decode(b'{"colour": "red"}', type=CreateSessionRequest)
