"""Tasks: statuses, the names of chats and the scope of permission rules."""

from typing import get_args

import msgspec
import pytest

from internal.agent.domain.tasks import (
    ENDED,
    STATUS_BY_STOP_REASON,
    Origin,
    Profile,
    RunSpec,
    Status,
    StopReason,
    chat_name,
    rule_scope,
)


def test_a_profile_grants_all_tools_or_only_the_listed_ones() -> None:
    assert Profile().grants("shell")
    reader = Profile(tools=("read_file",))
    assert reader.grants("read_file")
    assert not reader.grants("shell")
    assert not Profile(tools=()).grants("read_file")


def test_every_stop_reason_leads_to_a_status() -> None:
    assert set(STATUS_BY_STOP_REASON) == set(get_args(StopReason))
    assert set(STATUS_BY_STOP_REASON.values()) == ENDED | {"waiting"}
    assert set(get_args(Status)) >= ENDED


def test_an_origin_without_a_chat_is_named_after_its_principal() -> None:
    terminal = Origin("cli", "local")
    assert (terminal.chat, terminal.rule_scope) == ("", "principal:local")


def test_an_origin_in_a_chat_shares_the_scope_of_everyone_in_it() -> None:
    one = Origin("lark", "ou_1", "cli_a1", "oc_1", "om_1")
    other = Origin("lark", "ou_2", "cli_a1", "oc_1", "om_2")
    assert one.chat == "lark:cli_a1:oc_1" == chat_name("lark", "cli_a1", "oc_1")
    assert one.rule_scope == other.rule_scope == rule_scope(one.chat, "anyone")


def test_a_run_spec_survives_storage() -> None:
    spec = RunSpec(model="m", people=True, plan_review="complex")
    assert msgspec.json.decode(msgspec.json.encode(spec), type=RunSpec) == spec


@pytest.mark.parametrize(
    ("origin", "is_private"),
    [
        (Origin("web", "local"), True),
        (Origin("lark", "lark:a:ou_1", "a", "oc_1", direct=True), True),
        (Origin("lark", "lark:a:ou_1", "a", "oc_1"), False),
    ],
)
def test_only_groups_are_not_private(origin: Origin, *, is_private: bool) -> None:
    assert origin.is_private is is_private
