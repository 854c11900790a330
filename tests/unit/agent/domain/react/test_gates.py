"""The gates of the modes strict, advisory and off, and their release."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.events.types import (
    DiagnosticError,
    Event,
    NodeCompleted,
    NodeStarted,
    PlanUpdated,
    ToolCompleted,
)
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.plans import MAX_STEPS
from internal.agent.domain.react.gates import (
    CONTROL_CALLS,
    CONTROL_SPECS,
    DEFERRED_TOOL_CALLS,
    DEFERRED_TOOL_SPECS,
    GATES,
    MAX_CORRECTIONS,
    MAX_OPTIONS,
    parse_control_call,
)
from internal.agent.domain.react.steps import Act
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import GateMode
from internal.agent.domain.usage import RunLimits
from tests.support.turn_driver import (
    add_reply,
    call,
    clarify_call,
    last_results,
    next_ask,
    outcome,
    plan_call,
    read,
    run_calls,
    run_config,
    start_turn,
    update_plan_call,
    write,
)

FIRST = "Not run. Call plan first, alone, with your goal and steps; then call {} again."
ALONE = "Not run. Call {} alone, then continue with the other tools."
SOLO = {
    "plan": plan_call("x", "Look"),
    "clarify": clarify_call("x", "1"),
    "request_user": call("x", "request_user", question="Which pond?"),
}


def corrections(events: list[Event]) -> dict[str, str]:
    """Return the corrections among the events, by call."""
    return {
        str(event.call_id): event.error
        for event in events
        if isinstance(event, DiagnosticError) and event.call_id is not msgspec.UNSET
    }


def complex_plan() -> Turn:
    turn = start_turn(run_config("strict"))
    add_reply(turn, plan_call("p", "Look", "Count", complexity="complex"))
    return turn


def test_the_modes_have_their_gates() -> None:
    names = {mode: [gate.name for gate in gates] for mode, gates in GATES.items()}
    assert names == {"strict": ["solo", "plan", "step"], "advisory": ["solo"], "off": []}


@pytest.mark.parametrize("mode", ["strict", "advisory"])
@pytest.mark.parametrize("tool", SOLO)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_exclusive_tool_among_others_corrects_the_whole_reply(
    mode: GateMode, tool: str, at: int
) -> None:
    turn = start_turn(run_config(mode))
    calls: list[ToolCall] = [read("a"), write("b")]
    calls.insert(at, SOLO[tool])
    events = add_reply(turn, *calls)
    assert corrections(events) == dict.fromkeys(("a", "b", "x"), ALONE.format(tool))
    assert len(events) == 3
    assert turn.plan is None
    assert {each.text for each in last_results(turn).values()} == {ALONE.format(tool)}
    next_ask(turn)


def test_two_exclusive_tools_in_one_reply_are_corrected() -> None:
    turn = start_turn(run_config("advisory"))
    add_reply(turn, plan_call("a"), plan_call("b"))
    assert turn.plan is None


def test_off_corrects_nothing() -> None:
    turn = start_turn(run_config("off"))
    events = add_reply(turn, read("a"), plan_call("b", "Look", complexity="complex"), write("c"))
    assert corrections(events) == {}
    assert turn.next() == Act((read("a"), write("c")))


def test_advisory_requires_no_plan() -> None:
    turn = start_turn(run_config("advisory"))
    assert add_reply(turn, write("a")) == []
    assert turn.next() == Act((write("a"),))


def test_strict_requires_a_plan_before_any_action() -> None:
    turn = start_turn(run_config("strict"))
    events = add_reply(turn, read("a"), update_plan_call("u", "1", "completed"), write("b"))
    assert corrections(events) == {
        "a": FIRST.format("read_file"),
        "b": FIRST.format("write_file"),
    }
    assert (
        last_results(turn)["u"].text
        == "There is no step “1”. The steps are: none, there is no plan."
    )
    (shown,) = add_reply(turn, plan_call("p", "Look", "Count"))
    assert isinstance(shown, PlanUpdated)
    assert last_results(turn)["p"].text.endswith("The steps and their ids:\n1. Look\n2. Count")
    assert add_reply(turn, read("c"), write("d")) == []
    assert turn.next() == Act((read("c"), write("d")))


def test_a_greeting_needs_no_plan() -> None:
    turn = start_turn(run_config("strict"))
    add_reply(turn, "Hello!")
    assert outcome(turn).stop_reason == "final_answer"


def test_clarify_opens_each_step_of_a_complex_plan() -> None:
    turn = complex_plan()
    wanted = (
        "Not run. Open the step first: call clarify alone with step_id “{}” ({}), then call"
        " write_file again."
    )
    assert corrections(add_reply(turn, write("a"))) == {"a": wanted.format("1", "Look")}
    started, shown = add_reply(turn, clarify_call("o", "1"))
    assert started == NodeStarted(node_id="step:1", step_index=1, step_description="Look")
    assert isinstance(shown, PlanUpdated)
    assert [step.status for step in shown.steps] == ["in_progress", "pending"]
    assert add_reply(turn, write("b"), read("c")) == []
    run_calls(turn)
    shown, completed = add_reply(turn, update_plan_call("m", "1", "completed"))
    assert completed == NodeCompleted(node_id="step:1", duration_ms=0)
    assert corrections(add_reply(turn, write("d"))) == {"d": wanted.format("2", "Count")}
    add_reply(turn, clarify_call("o2", "2"))
    add_reply(turn, update_plan_call("m2", "2", "skipped"))
    assert add_reply(turn, write("e")) == []


def test_update_plan_does_not_open_a_step() -> None:
    turn = complex_plan()
    add_reply(turn, update_plan_call("m", "1", "completed"))
    add_reply(turn, update_plan_call("n", "2", "in_progress"))
    assert "step_id “2”" in corrections(add_reply(turn, write("a")))["a"]


def test_an_open_step_stays_open_when_another_step_changes() -> None:
    turn = complex_plan()
    add_reply(turn, clarify_call("o", "1"))
    assert [type(event) for event in add_reply(turn, update_plan_call("m", "2", "failed"))] == [
        PlanUpdated
    ]
    add_reply(turn, update_plan_call("n", "1", "in_progress"))
    assert turn.open_step == "1"
    assert add_reply(turn, write("a")) == []


def test_a_new_plan_closes_the_open_step() -> None:
    turn = complex_plan()
    add_reply(turn, clarify_call("o", "1"))
    (shown,) = add_reply(turn, plan_call("p2", "Wait", complexity="complex"))
    assert isinstance(shown, PlanUpdated)
    assert shown.version == 2
    assert corrections(add_reply(turn, write("a")))


def test_a_simple_plan_has_no_steps_to_open() -> None:
    turn = start_turn(run_config("strict"))
    add_reply(turn, plan_call("p", "Look", "Count"))
    assert add_reply(turn, write("a")) == []


@pytest.mark.parametrize(
    ("ui", "known"),
    [(clarify_call("x", "9"), "1, 2"), (update_plan_call("x", "9", "completed"), "1, 2")],
)
def test_an_unknown_step_is_named_in_the_correction(ui: ToolCall, known: str) -> None:
    turn = complex_plan()
    assert add_reply(turn, ui) == []
    assert last_results(turn)["x"].text == f"There is no step “9”. The steps are: {known}."
    assert not last_results(turn)["x"].failed


def test_a_correction_is_not_a_tool_failure() -> None:
    turn = start_turn(run_config("strict", limits=RunLimits(max_consecutive_tool_failures=1)))
    events = add_reply(turn, write("a"))
    assert not last_results(turn)["a"].failed
    assert not any(isinstance(event, ToolCompleted) for event in events)
    assert not next_ask(turn).final


@pytest.mark.parametrize(
    ("gate", "reply"),
    [("solo", (plan_call("p"), read("r"))), ("plan", (write("w"), write("v")))],
)
def test_a_gate_is_released_after_two_corrections_in_a_row(
    gate: str, reply: tuple[ToolCall, ...]
) -> None:
    turn = start_turn(run_config("strict"))
    add_reply(turn, *reply)
    assert turn.released_gates == frozenset()
    events = add_reply(turn, *reply)
    assert events[-1] == DiagnosticError(
        phase="gate",
        error=f"the gate “{gate}” is off after {MAX_CORRECTIONS} corrections in a row",
    )
    assert len(corrections(events)) == 2  # the second reply is still corrected
    assert turn.released_gates == {gate}
    events = add_reply(turn, *reply)
    assert corrections(events) == {}
    run_calls(turn)
    add_reply(turn, *reply)
    assert turn.released_gates == {gate}


def test_the_step_gate_is_released_after_two_corrections() -> None:
    turn = complex_plan()
    add_reply(turn, write("a"))
    add_reply(turn, write("b"))
    assert turn.released_gates == {"step"}
    assert add_reply(turn, write("c")) == []


def test_a_valid_reply_resets_the_count_of_corrections() -> None:
    turn = start_turn(run_config("strict"))
    for _ in range(3):
        add_reply(turn, write("w"))
        add_reply(turn, update_plan_call("m", "1", "completed"))
    assert turn.released_gates == frozenset()
    add_reply(turn, write("w"))
    add_reply(turn, plan_call("p"), write("w"))  # another gate's correction
    assert turn.released_gates == frozenset()
    assert turn.corrections == {"solo": 1}


def test_without_the_exclusive_gate_a_plan_covers_the_calls_after_it() -> None:
    turn = start_turn(run_config("strict"))
    for _ in range(MAX_CORRECTIONS):
        add_reply(turn, plan_call("p"), write("w"))
    events = add_reply(turn, write("a"), plan_call("p"), write("b"))
    assert corrections(events) == {"a": FIRST.format("write_file")}
    assert turn.next() == Act((turn.calls[2],))


def test_every_tool_of_the_turn_has_a_schema() -> None:
    specs, kinds = (*CONTROL_SPECS, *DEFERRED_TOOL_SPECS), (*CONTROL_CALLS, *DEFERRED_TOOL_CALLS)
    assert [spec.name for spec in specs] == [kind.tool for kind in kinds]
    for spec in specs:
        assert spec.risk == "ui"
        assert spec.idempotent
        assert spec.parameters["type"] == "object"
        assert set(spec.parameters.get("required", ())) <= set(spec.parameters["properties"])
        assert "$ref" not in msgspec.json.encode(spec.parameters).decode()
        assert spec.description.endswith(".")


@pytest.mark.parametrize(
    ("tool", "arguments", "complaint"),
    [
        ("plan", {}, "required field `goal`"),
        ("plan", {"goal": "g", "steps": []}, "length >= 1"),
        ("plan", {"goal": "g", "steps": ["s"] * (MAX_STEPS + 1)}, f"length <= {MAX_STEPS}"),
        ("plan", {"goal": "g" * 4001, "steps": ["s"]}, "length <= 4000"),
        ("plan", {"goal": "g", "steps": ["s"], "complexity": "hard"}, "$.complexity"),
        ("update_plan", {"step_id": "1", "status": "pending"}, "$.status"),
        ("update_plan", {"step_id": 1, "status": "completed"}, "Expected `str`"),
        ("clarify", {"step_id": "1", "goal": "g"}, "`success_criteria`"),
        ("request_user", {"question": ""}, "length >= 1"),
        (
            "request_user",
            {"question": "q", "options": ["o"] * (MAX_OPTIONS + 1)},
            f"length <= {MAX_OPTIONS}",
        ),
    ],
)
def test_bad_arguments_are_named(tool: str, arguments: dict[str, Any], complaint: str) -> None:
    turn = start_turn(run_config())
    (event,) = add_reply(turn, ToolCall("x", tool, arguments))
    assert isinstance(event, ToolCompleted)
    assert str(event.error).startswith("Not done: ")
    assert complaint in str(event.error)
    assert last_results(turn)["x"].failed


def test_other_tools_are_not_control_calls() -> None:
    assert parse_control_call("read_file", {}) is None


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_FIELDS = ["goal", "steps", "step_id", "status", "success_criteria", "question", "options", "title"]


@given(
    st.sampled_from([kind.tool for kind in CONTROL_CALLS]),
    st.dictionaries(st.sampled_from(_FIELDS) | st.text(max_size=3), _values),
)
def test_no_arguments_of_a_control_tool_raise(tool: str, arguments: dict[str, Any]) -> None:
    turn = start_turn(run_config())
    add_reply(turn, ToolCall("x", tool, arguments))
    assert list(last_results(turn)) == ["x"]
    next_ask(turn)
