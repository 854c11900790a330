"""The Lark settings, and Lark messages as messages of the chat application."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.task_options import TaskDefaults
from internal.channels.chat.channel import channel_defaults
from internal.channels.chat.chat_rules import resolve_rules
from internal.channels.chat.policy import listed_rights
from internal.channels.chat.transport import IncomingMessage
from internal.channels.lark.channel import incoming_message
from internal.channels.lark.content.message_content import Mention
from internal.channels.lark.events import LarkMessage
from internal.config.loader import load
from internal.llm.model_catalog import make_model_book
from internal.settings.chat import ChatGroup
from internal.settings.settings import Settings
from internal.settings.types import ConfigError
from larkspur.lark_simulator import background_simulator
from larkspur.task_defaults import open_profiles, task_defaults

BOT = "ou_bot"


def load_settings(home: Path, text: str = "", flags: dict[str, Any] | None = None) -> Settings:
    (home / "config.yaml").write_text(text, encoding="utf-8")
    return load(environ={"LARKSPUR_HOME": str(home)}, flags=flags or {}).settings


def lark_defaults(home: Path, text: str) -> TaskDefaults:
    settings = load_settings(home, text)
    book = make_model_book(settings.llm)
    defaults = task_defaults(settings, book, open_profiles(home, book))
    return channel_defaults(settings.channels.lark, defaults)


def test_a_group_differs_in_what_it_names(tmp_path: Path) -> None:
    text = """
channels:
  lark:
    busy_mode: interrupt
    groups:
      oc_1: {policy: off, talk: [ou_1]}
      oc_2: {policy: thread, operate: [], busy_mode: queue}
"""
    found = load_settings(tmp_path, text).channels.lark
    assert found.groups == {
        "oc_1": ChatGroup(policy="off", talk=("ou_1",)),
        "oc_2": ChatGroup(policy="thread", operate=(), busy_mode="queue"),
    }
    modes = [resolve_rules(found, each).busy_mode for each in ("oc_1", "oc_2")]
    assert modes == ["interrupt", "queue"]
    assert [found.group(each).policy for each in ("oc_1", "oc_3")] == ["off", None]


@pytest.mark.parametrize(
    ("group", "why"),
    [
        ("{policy: sometimes}", "policy must be mention, open, thread or off"),
        ("{operate: ou_1}", "operate"),
        ("{speak: [ou_1]}", "speak"),
        ("{busy_mode: collect}", "busy_mode must be steer, queue or interrupt"),
    ],
)
def test_a_group_with_a_mistake_is_refused(tmp_path: Path, group: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load_settings(tmp_path, f"channels: {{lark: {{groups: {{oc_1: {group}}}}}}}")


def test_unset_plan_review_and_question_ttl_are_those_of_the_agent(tmp_path: Path) -> None:
    agent = "agent: {plan_review: complex, question_ttl_minutes: 30}\n"
    found = lark_defaults(tmp_path, agent)
    assert (found.plan_review, found.question_ttl_minutes) == ("complex", 30)
    own = lark_defaults(
        tmp_path, agent + "channels: {lark: {plan_review: off, question_ttl_minutes: 5}}"
    )
    assert (own.plan_review, own.question_ttl_minutes) == ("off", 5)


def test_the_first_person_of_the_local_lark_is_its_operator(tmp_path: Path) -> None:
    with background_simulator() as lark:
        found = load_settings(tmp_path, flags=lark.flags).channels.lark
    assert lark.operator == "Mei Lin"
    assert len(found.access.operate) == 1
    rules = resolve_rules(found, "oc_any")
    assert listed_rights(rules, found.access.operate[0]) == {"talk", "operate"}
    assert listed_rights(rules, "ou_other") == {"talk"}


@pytest.mark.parametrize(
    ("changed", "seen"),
    [
        ({}, {}),
        ({"by_person": False}, {"is_from_person": False, "is_from_bot": True}),
        ({"by_person": False, "open_id": BOT}, {"user_id": BOT, "is_from_person": False}),
        ({"open_id": BOT}, {"user_id": BOT, "is_from_person": False}),
        ({"direct": False}, {"is_direct": False}),
        ({"mentions": (Mention("@_user_1", BOT, "L"),)}, {"is_mention": True}),
        ({"mentions": (Mention("@_user_1", "ou_9", "N"),)}, {"is_mention": False}),
        ({"content": "{}"}, {"text": ""}),
        ({"kind": "sticker"}, {"text": "[a sticker]"}),
        ({"kind": "hologram"}, {"text": None}),
        ({"kind": "merge_forward"}, {"text": "", "is_partial": True}),
        (
            {"kind": "interactive", "content": '{"title": "Alert"}'},
            {"text": "", "forwarded": "Alert", "is_partial": True},
        ),
        ({"kind": "share_chat"}, {"text": "[a group card]", "is_partial": True}),
        ({"created": 0}, {"sent_at": datetime.fromtimestamp(0, UTC)}),
        ({"parent_id": "om_0", "root_id": "om_1"}, {"quoted_id": "om_0"}),
        ({"parent_id": "om_0", "thread_id": "omt_1"}, {"quoted_id": "om_0", "thread_id": "omt_1"}),
        (  # the root of a thread is the parent of all of its messages
            {"parent_id": "om_0", "root_id": "om_0", "thread_id": "omt_1"},
            {"thread_id": "omt_1", "thread_root_id": "om_0"},
        ),
        ({"is_external": True}, {"is_external": True}),
    ],
)
def test_a_lark_message_is_one_of_the_chat_application(
    changed: dict[str, Any], seen: dict[str, Any]
) -> None:
    message = LarkMessage(
        "om_1", "oc_1", True, "text", '{"text": "hi"}', "ou_1", True, None
    )._replace(**changed)
    plain = IncomingMessage(
        "om_1",
        "oc_1",
        "ou_1",
        "hi",
        is_direct=True,
        is_mention=False,
        is_from_person=True,
        sent_at=None,
    )
    assert incoming_message(message, BOT, "cli_1") == plain._replace(**seen)
