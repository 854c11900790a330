"""Messages are checked against the rules of the channel and the rights of their sender."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from internal.channels.chat.chat_rules import resolve_rules
from internal.channels.chat.command_parser import is_pairing
from internal.channels.chat.policy import (
    Accepted,
    Ignored,
    Reply,
    SenderContext,
    check_message,
    listed_rights,
    needs_thread_lookup,
)
from internal.channels.chat.transport import IncomingMessage
from internal.settings.chat import ChatAccess, ChatChannelSettings, ChatGroup
from tests.support.chat_settings import with_values
from tests.support.chat_texts import EN_TEXTS

NOW = datetime(2026, 1, 31, 8, 0, tzinfo=UTC)
SETTINGS = ChatChannelSettings()
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


def judge(
    message: IncomingMessage, settings: ChatChannelSettings, sender: SenderContext = SENDER
) -> Ignored | Reply | Accepted:
    rules = resolve_rules(settings, message.chat_id)
    return check_message(message, rules, sender, texts=EN_TEXTS)


@pytest.mark.parametrize(
    ("changed", "settings", "verdict"),
    [
        ({}, SETTINGS, Accepted),
        ({"is_from_person": False}, SETTINGS, Ignored),
        ({"user_id": ""}, SETTINGS, Ignored),
        ({}, with_values(SETTINGS, allow_direct=False), Ignored),
        ({"is_direct": False}, SETTINGS, Ignored),
        ({"is_direct": False}, with_values(SETTINGS, group_policy="open"), Accepted),
        (
            {"is_direct": False},
            with_values(SETTINGS, group_policy="open", allow_groups=False),
            Ignored,
        ),
        ({"is_direct": False, "is_mention": True}, SETTINGS, Accepted),
        ({"text": ""}, SETTINGS, Ignored),
        ({"text": None}, SETTINGS, Reply),
        ({}, with_values(SETTINGS, access=ChatAccess(talk=())), Reply),
        ({}, with_values(SETTINGS, access=ChatAccess(talk=("ou_1",))), Accepted),
        ({}, with_values(SETTINGS, access=ChatAccess(talk=("oc_1",))), Accepted),
        ({"sent_at": datetime.fromtimestamp(0, UTC)}, SETTINGS, Reply),
        ({"sent_at": NOW - timedelta(minutes=60)}, SETTINGS, Accepted),
        ({"sent_at": NOW + timedelta(seconds=999)}, SETTINGS, Accepted),
        ({"text": "x" * 200_001}, SETTINGS, Reply),
    ],
)
def test_messages_are_accepted_ignored_or_rejected(
    changed: dict[str, Any], settings: ChatChannelSettings, verdict: type
) -> None:
    judged = judge(MESSAGE._replace(**changed), settings)
    assert type(judged) is verdict


IN_THREAD: dict[str, Any] = {"is_direct": False, "thread_id": "omt_1"}
TO_US: dict[str, Any] = {"is_direct": False, "is_mention": True}


@pytest.mark.parametrize(
    ("changed", "group", "ours", "verdict"),
    [
        (IN_THREAD, ChatGroup(policy="thread"), True, Accepted),
        (IN_THREAD, ChatGroup(policy="thread"), False, Ignored),
        (IN_THREAD, ChatGroup(policy="mention"), True, Ignored),
        (TO_US, ChatGroup(policy="thread"), False, Accepted),
        (TO_US, ChatGroup(policy="off"), True, Ignored),
        ({"is_direct": False}, ChatGroup(policy="open"), False, Accepted),
        (TO_US, ChatGroup(talk=("ou_9",)), False, Reply),
        (TO_US, ChatGroup(talk=("oc_1",)), False, Accepted),
    ],
)
def test_a_group_has_rules_of_its_own(
    changed: dict[str, Any], group: ChatGroup, ours: bool, verdict: type
) -> None:
    settings = with_values(SETTINGS, groups={"oc_1": group})
    heard = MESSAGE._replace(**changed)
    assert type(judge(heard, settings, SENDER._replace(in_our_thread=ours))) is verdict
    elsewhere = heard._replace(chat_id="oc_2", **TO_US)
    assert type(judge(elsewhere, settings)) is Accepted


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
def test_a_thread_is_looked_up_only_if_its_group_policy_needs_it(
    changed: dict[str, Any], matters: bool
) -> None:
    settings = with_values(SETTINGS, groups={"oc_1": ChatGroup(policy="thread")})
    message = MESSAGE._replace(**changed)
    rules = resolve_rules(settings, message.chat_id)
    assert needs_thread_lookup(message, rules) is matters


def test_a_group_has_lists_of_its_own() -> None:
    groups = {"oc_1": ChatGroup(operate=("ou_2",)), "oc_2": ChatGroup(talk=())}
    settings = with_values(SETTINGS, access=ChatAccess(operate=("ou_1",)), groups=groups)
    assert listed_rights(resolve_rules(settings, "oc_1"), "ou_1") == {"talk"}
    assert listed_rights(resolve_rules(settings, "oc_1"), "ou_2") == {"talk", "operate"}
    assert listed_rights(resolve_rules(settings, "oc_2"), "ou_1") == {"operate"}
    assert listed_rights(resolve_rules(settings, "oc_3"), "ou_1") == {"talk", "operate"}
    listed = with_values(settings, access=ChatAccess(operate=("oc_4",)))
    assert listed_rights(resolve_rules(listed, "oc_4"), "ou_9") == {"talk", "operate"}


def test_a_user_without_talk_may_redeem_a_pairing_code() -> None:
    settings = with_values(SETTINGS, access=ChatAccess(talk=()))
    for text, verdict in (("/pair ABCD", Accepted), ("/help", Reply), ("pair", Reply)):
        assert is_pairing(text) is (verdict is Accepted)
        assert type(judge(MESSAGE._replace(text=text), settings)) is verdict
    given = SENDER._replace(granted=frozenset({"talk"}))
    assert type(judge(MESSAGE, settings, given)) is Accepted


def test_a_person_of_lark_has_the_rights_of_the_lists() -> None:
    judged = judge(MESSAGE, with_values(SETTINGS, access=ChatAccess(operate=("ou_1",))))
    assert isinstance(judged, Accepted)
    assert judged.principal.id == "lark:cli_1:ou_1"
    assert judged.principal.may("operate")
    assert not judged.principal.may("owner")


def test_a_user_of_another_organization_has_only_the_rights_of_their_own_entries() -> None:
    access = ChatAccess(talk=("*", "oc_1", "ou_1"), operate=("*", "oc_1"))
    settings = with_values(SETTINGS, access=access)
    assert listed_rights(resolve_rules(settings, "oc_1"), "ou_1", is_external=True) == {"talk"}
    assert listed_rights(resolve_rules(settings, "oc_1"), "ou_2", is_external=True) == frozenset()
    found = judge(MESSAGE._replace(is_external=True), SETTINGS)
    assert isinstance(found, Reply)


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (timedelta(minutes=61), "61 minutes late"),
        (timedelta(hours=2, minutes=59), "2 hours late"),
        (timedelta(hours=47), "47 hours late"),
        (timedelta(minutes=3_412), "2 days late"),
    ],
)
def test_the_age_of_a_late_message_is_in_a_fitting_unit(age: timedelta, said: str) -> None:
    late = MESSAGE._replace(sent_at=NOW - age)
    verdict = judge(late, SETTINGS)
    assert isinstance(verdict, Reply)
    assert said in verdict.text
