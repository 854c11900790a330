"""From the settings of Lark to the rules of its door."""

from pathlib import Path
from typing import Any

import pytest

from internal.channels.chat.policy import ChatRules, GroupRules
from internal.config.loader import load
from internal.config.types import ConfigError
from larkspur.mapping import lark_rules
from larkspur.trying import local_lark


def rules(home: Path, text: str = "", flags: dict[str, Any] | None = None) -> ChatRules:
    (home / "config.yaml").write_text(text, encoding="utf-8")
    return lark_rules(load(environ={"LARKSPUR_HOME": str(home)}, flags=flags or {}).settings)


def test_a_group_differs_in_what_it_names(tmp_path: Path) -> None:
    text = """
channels:
  lark:
    busy_mode: interrupt
    groups:
      oc_1: {policy: off, talk: [ou_1]}
      oc_2: {policy: thread, operate: [], busy_mode: queue}
"""
    found = rules(tmp_path, text)
    assert found.groups == {
        "oc_1": GroupRules("off", talk=("ou_1",)),
        "oc_2": GroupRules("thread", operate=(), busy_mode="queue"),
    }
    assert [found.busy_mode_in(each) for each in ("oc_1", "oc_2")] == ["interrupt", "queue"]
    assert [found.policy_in(each) for each in ("oc_1", "oc_3")] == ["off", "mention"]


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
        rules(tmp_path, f"channels: {{lark: {{groups: {{oc_1: {group}}}}}}}")


def test_reviews_and_times_are_the_agents_until_the_channel_has_its_own(tmp_path: Path) -> None:
    agent = "agent: {plan_review: complex, question_ttl_minutes: 30}\n"
    found = rules(tmp_path, agent)
    assert (found.plan_review, found.question_ttl_minutes) == ("complex", 30)
    own = rules(tmp_path, agent + "channels: {lark: {plan_review: off, question_ttl_minutes: 5}}")
    assert (own.plan_review, own.question_ttl_minutes) == ("off", 5)


def test_the_first_person_of_the_local_lark_is_its_operator(tmp_path: Path) -> None:
    with local_lark() as lark:
        found = rules(tmp_path, flags=lark.flags)
    assert lark.operator == "Mei Lin"
    assert len(found.operate) == 1
    assert found.rights(found.operate[0], "oc_any") == {"talk", "operate"}
    assert found.rights("ou_somebody", "oc_any") == {"talk"}
