"""How reviewed calls are shown, and how much of them an event carries."""

import msgspec
import pytest

from internal.agent.domain.plans import Plan, number_steps
from internal.agent.domain.react.review_state import (
    MAX_APPROVAL_ITEMS,
    MAX_SHOWN_CHARS,
    byte_budget,
    call_text,
    denied_event,
    display_call,
    plan_updated,
)
from tests.support.turn_driver import TOOLS, call

SPECS = {spec.name: spec for spec in TOOLS}


def test_a_command_is_shown_as_it_runs_and_other_calls_with_their_arguments() -> None:
    assert call_text(call("a", "shell", command="ls | wc"), SPECS["shell"]) == "ls | wc"
    other = call("b", "read_file", path="鹭.txt")
    assert call_text(other, SPECS["read_file"]) == 'read_file {"path": "鹭.txt"}'
    assert call_text(call("c", "gone", x=1), None) == 'gone {"x": 1}'


def test_a_displayed_call_is_truncated_and_shows_invisible_characters() -> None:
    assert display_call(call("a", "shell", command="rm \u202ex"), SPECS["shell"]) == "rm \\u202ex"
    long = display_call(call("a", "shell", command="x" * 1_000_000), SPECS["shell"])
    assert len(long) <= MAX_SHOWN_CHARS


@pytest.mark.parametrize("calls", [0, 1, 2, 7, MAX_APPROVAL_ITEMS, 500])
def test_the_calls_of_one_question_fit_into_an_event(calls: int) -> None:
    asked = min(max(calls, 1), MAX_APPROVAL_ITEMS)
    assert 1000 < byte_budget(calls) * asked <= 48_000


def test_a_denied_call_is_an_event_that_fits_and_names_the_missing_rules() -> None:
    huge = call("a", "shell", command="\x01" * 100_000)
    event = denied_event(huge, SPECS["shell"], "no " * 100_000, ("shell(ls)",))
    assert len(msgspec.json.encode(event)) < 2**16
    metadata = event.metadata
    assert isinstance(metadata, dict)
    assert (metadata["denied"], metadata["rules"]) == (True, ["shell(ls)"])


def test_an_event_about_an_untitled_plan_has_no_title() -> None:
    plan = Plan(2, "Herons", "simple", number_steps(["Look"]))
    assert "title" not in msgspec.to_builtins(plan_updated(plan))
    titled = msgspec.structs.replace(plan, title="Birds")
    assert plan_updated(titled).title == "Birds"
