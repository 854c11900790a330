"""Messages are checked against the rules of the channel and the rights of their sender."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from internal.channels.chat.command_parser import is_pairing
from internal.channels.chat.policy import (
    Accepted,
    ChatRules,
    GroupRules,
    Ignored,
    Reply,
    SenderContext,
    check_message,
    needs_thread_lookup,
)
from internal.channels.chat.transport import IncomingMessage

NOW = datetime(2026, 1, 31, 8, 0, tzinfo=UTC)
RULES = ChatRules(language="en")
SENDER = SenderContext("lark:cli_1:ou_1", NOW)
MESSAGE = IncomingMessage(
    "om_1",
    "oc_1",
    "ou_1",
    "hi",
    is_direct=True,
    is_mention=False,
    is_from_person=True,
    sent_at=None,
)


@pytest.mark.parametrize(
    ("changed", "rules", "verdict"),
    [
        ({}, RULES, Accepted),
        ({"is_from_person": False}, RULES, Ignored),
        ({"user_id": ""}, RULES, Ignored),
        ({}, replace(RULES, allow_direct=False), Ignored),
        ({"is_direct": False}, RULES, Ignored),
        ({"is_direct": False}, replace(RULES, group_policy="open"), Accepted),
        ({"is_direct": False}, replace(RULES, group_policy="open", allow_groups=False), Ignored),
        ({"is_direct": False, "is_mention": True}, RULES, Accepted),
        ({"text": ""}, RULES, Ignored),
        ({"text": None}, RULES, Reply),
        ({}, replace(RULES, talk=()), Reply),
        ({}, replace(RULES, talk=("ou_1",)), Accepted),
        ({}, replace(RULES, talk=("oc_1",)), Accepted),
        ({"sent_at": datetime.fromtimestamp(0, UTC)}, RULES, Reply),
        ({"sent_at": NOW - timedelta(minutes=60)}, RULES, Accepted),
        ({"sent_at": NOW + timedelta(seconds=999)}, RULES, Accepted),
        ({"text": "x" * 200_001}, RULES, Reply),
    ],
)
def test_gates(changed: dict[str, Any], rules: ChatRules, verdict: type) -> None:
    judged = check_message(MESSAGE._replace(**changed), rules, SENDER)
    assert type(judged) is verdict


IN_THREAD: dict[str, Any] = {"is_direct": False, "thread_id": "omt_1"}
TO_US: dict[str, Any] = {"is_direct": False, "is_mention": True}


@pytest.mark.parametrize(
    ("changed", "group", "ours", "verdict"),
    [
        (IN_THREAD, GroupRules("thread"), True, Accepted),
        (IN_THREAD, GroupRules("thread"), False, Ignored),
        (IN_THREAD, GroupRules("mention"), True, Ignored),
        (TO_US, GroupRules("thread"), False, Accepted),
        (TO_US, GroupRules("off"), True, Ignored),
        ({"is_direct": False}, GroupRules("open"), False, Accepted),
        (TO_US, GroupRules(talk=("ou_9",)), False, Reply),
        (TO_US, GroupRules(talk=("oc_1",)), False, Accepted),
    ],
)
def test_a_group_has_rules_of_its_own(
    changed: dict[str, Any], group: GroupRules, ours: bool, verdict: type
) -> None:
    rules = replace(RULES, groups={"oc_1": group})
    heard = MESSAGE._replace(**changed)
    assert type(check_message(heard, rules, SENDER._replace(in_our_thread=ours))) is verdict
    elsewhere = heard._replace(chat_id="oc_2", **TO_US)
    assert type(check_message(elsewhere, rules, SENDER)) is Accepted


@pytest.mark.parametrize(
    ("changed", "matters"),
    [
        (IN_THREAD, True),
        ({"is_direct": False}, False),
        ({**IN_THREAD, "is_direct": True}, False),
        ({**IN_THREAD, **TO_US}, False),
        ({**IN_THREAD, "chat_id": "oc_2"}, False),
    ],
)
def test_a_thread_is_looked_at_where_it_matters(changed: dict[str, Any], matters: bool) -> None:
    rules = replace(RULES, groups={"oc_1": GroupRules("thread")})
    assert needs_thread_lookup(MESSAGE._replace(**changed), rules) is matters


def test_a_group_has_lists_of_its_own() -> None:
    groups = {"oc_1": GroupRules(operate=("ou_2",)), "oc_2": GroupRules(talk=())}
    rules = replace(RULES, operate=("ou_1",), groups=groups)
    assert rules.rights("ou_1", "oc_1") == {"talk"}
    assert rules.rights("ou_2", "oc_1") == {"talk", "operate"}
    assert rules.rights("ou_1", "oc_2") == {"operate"}
    assert rules.rights("ou_1", "oc_3") == {"talk", "operate"}
    assert replace(rules, operate=("oc_4",)).rights("ou_9", "oc_4") == {"talk", "operate"}


def test_who_may_not_talk_may_still_give_a_code() -> None:
    rules = replace(RULES, talk=())
    for text, verdict in (("/pair ABCD", Accepted), ("/help", Reply), ("pair", Reply)):
        assert is_pairing(text) is (verdict is Accepted)
        assert type(check_message(MESSAGE._replace(text=text), rules, SENDER)) is verdict
    given = SENDER._replace(granted=frozenset({"talk"}))
    assert type(check_message(MESSAGE, rules, given)) is Accepted


def test_a_person_of_lark_has_the_rights_of_the_lists() -> None:
    judged = check_message(MESSAGE, replace(RULES, operate=("ou_1",)), SENDER)
    assert isinstance(judged, Accepted)
    assert judged.principal.id == "lark:cli_1:ou_1"
    assert judged.principal.may("operate")
    assert not judged.principal.may("owner")
