"""Gates of the four modes, and the action in the model's place after two corrections."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.delegation.requests import DELEGATION_SPECS
from internal.agent.domain.events.types import (
    DiagnosticError,
    Event,
    NodeCompleted,
    NodeStarted,
    PlanUpdated,
    ToolCompleted,
)
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.permissions.targets import CommandTarget, NetworkTarget, UrlTarget
from internal.agent.domain.plans import MAX_STEPS, PlanStep
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
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import RunLimits
from tests.support.turn_driver import (
    TASK,
    TOOLS,
    add_reply,
    call,
    clarify_call,
    last_results,
    make_answer,
    next_ask,
    next_question,
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


def not_run(events: list[Event]) -> dict[str, str]:
    """Return why calls were not run, as people see it, by call."""
    return {
        event.call_id: event.metadata["not_run"]
        for event in events
        if isinstance(event, ToolCompleted) and "not_run" in event.metadata
    }


def adaptive(*, isolated: bool = True) -> Turn:
    """A Turn of the mode adaptive whose commands may be isolated, with a tool of each risk."""
    shell = ToolSpec(
        "shell",
        "Run.",
        {"type": "object"},
        "exec",
        targets=(CommandTarget("command"), NetworkTarget("network")),
        sandboxed=True,
    )
    fetch = ToolSpec("fetch", "Fetch.", {"type": "object"}, "net", targets=(UrlTarget("url"),))
    remote = ToolSpec("mcp__pond__drain", "Drain.", {"type": "object"}, "exec")
    read_only, change, _, *rest = TOOLS
    config = msgspec.structs.replace(
        run_config("adaptive"),
        tools=(read_only, change, shell, fetch, remote, *DELEGATION_SPECS, *rest),
        isolated=isolated,
    )
    return start_turn(config)


def complex_plan() -> Turn:
    turn = start_turn(run_config("strict"))
    add_reply(turn, plan_call("p", "Look", "Count", complexity="complex"))
    return turn


def test_the_modes_have_their_gates() -> None:
    names = {mode: [gate.name for gate in gates] for mode, gates in GATES.items()}
    all_three = ["solo", "plan", "step"]
    assert names == {"adaptive": all_three, "strict": all_three, "advisory": ["solo"], "off": []}


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
    assert not_run(events) == dict.fromkeys(("a", "b", "x"), "alone")
    assert len(events) == 6
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
    assert not_run(events) == {"a": "plan"}
    assert not next_ask(turn).final


@pytest.mark.parametrize("gates", ["strict", "adaptive"])
def test_after_two_corrections_the_plan_is_made_from_the_task(gates: GateMode) -> None:
    turn = start_turn(run_config(gates))
    for _ in range(MAX_CORRECTIONS):
        assert not_run(add_reply(turn, write("w"), write("v"))) == {
            each.call_id: "plan" for each in turn.messages[-2].calls
        }
    assert turn.not_run == 2
    (shown,) = add_reply(turn, write("x"), write("y"))
    assert turn.next() == Act((write("x"), write("y")))
    assert shown == PlanUpdated(
        version=1,
        goal=TASK,
        complexity="simple",
        steps=(PlanStep("1", TASK),),
        made_by="larkspur",
    )
    run_calls(turn)
    assert turn.not_run == 0
    assert add_reply(turn, write("z")) == []


def test_a_plan_that_people_approve_is_asked_about_in_the_models_place() -> None:
    config = msgspec.structs.replace(run_config("strict", people=True), plan_review="always")
    turn = start_turn(config)
    for call_id in "ab":
        add_reply(turn, write(call_id))
    events = add_reply(turn, write("c"))
    assert not_run(events) == {"c": "plan_review"}
    assert next_question(turn).plan == turn.plan
    turn.resolve(make_answer(turn, "approve"))
    assert last_results(turn)["c"].text.startswith("The person agrees to plan 1: Count the herons.")
    assert add_reply(turn, write("d")) == []
    assert turn.next() == Act((write("d"),))


def test_after_two_corrections_the_step_is_opened() -> None:
    turn = complex_plan()
    assert not_run(add_reply(turn, write("a"))) == {"a": "step"}
    add_reply(turn, write("b"))
    started, shown = add_reply(turn, write("c"))
    assert turn.next() == Act((write("c"),))
    assert started == NodeStarted(node_id="step:1", step_index=1, step_description="Look")
    assert isinstance(shown, PlanUpdated)
    assert shown.made_by == "agent"
    assert shown.steps[0] == PlanStep("1", "Look", "in_progress", opened_by="larkspur")
    run_calls(turn)
    add_reply(turn, update_plan_call("u", "1", "completed"))
    assert not_run(add_reply(turn, write("d"))) == {"d": "step"}


def test_clarify_stores_its_success_criteria_with_the_step() -> None:
    turn = complex_plan()
    criteria = ["All herons seen", "Photos kept"]
    add_reply(turn, call("o", "clarify", step_id="1", goal="g", success_criteria=criteria))
    assert turn.plan is not None
    step = turn.plan.step("1")
    assert step == PlanStep("1", "Look", "in_progress", "All herons seen\nPhotos kept")


def test_after_two_corrections_an_exclusive_call_is_taken_before_the_others() -> None:
    turn = start_turn(run_config("strict"))
    for _ in range(MAX_CORRECTIONS):
        assert len(not_run(add_reply(turn, write("w"), plan_call("p")))) == 2
    (shown,) = add_reply(turn, write("a"), plan_call("q"), read("b"))
    assert isinstance(shown, PlanUpdated)
    assert turn.next() == Act((write("a"), read("b")))
    run_calls(turn)
    assert [*last_results(turn)] == ["a", "q", "b"]
    add_reply(turn, plan_call("r"), read("c"))
    assert turn.next() == Act((read("c"),))
    run_calls(turn)
    add_reply(turn, read("d"))
    run_calls(turn)
    assert len(not_run(add_reply(turn, plan_call("s"), read("e")))) == 2


def test_the_calls_beside_a_question_are_never_run_before_its_answer() -> None:
    turn = start_turn(run_config("advisory", people=True))
    for _ in range(MAX_CORRECTIONS):
        add_reply(turn, SOLO["request_user"], write("w"))
    events = add_reply(turn, SOLO["request_user"], write("a"))
    assert not_run(events) == {"a": "alone"}
    assert next_question(turn).title == "Which pond?"


def test_a_valid_reply_resets_the_count_of_corrections() -> None:
    turn = start_turn(run_config("strict"))
    for _ in range(3):
        add_reply(turn, write("w"))
        add_reply(turn, update_plan_call("m", "1", "completed"))
    assert turn.plan is None
    add_reply(turn, write("w"))
    add_reply(turn, plan_call("p"), write("w"))  # another gate's correction
    assert turn.corrections == {"solo": 1}


def test_adaptive_lets_two_reads_or_one_isolated_command_run_without_a_plan() -> None:
    turn = adaptive()
    reason = (
        "Not run. Call plan first, alone, with your goal and steps; then call read_file (c.txt)"
        " again: more than two calls that read, or one isolated command, need a plan."
    )
    assert corrections(add_reply(turn, read("a"), read("b"), read("c"))) == {"c": reason}
    assert run_calls(turn) == ("a", "b")
    turn = adaptive()
    assert add_reply(turn, call("a", "shell", command="ls")) == []
    run_calls(turn)
    assert not_run(add_reply(turn, read("b"))) == {"b": "plan"}
    add_reply(turn, plan_call("p"))
    assert add_reply(turn, write("c"), call("d", "shell", command="ls")) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("write_file", {"path": "a.txt"}, "(a.txt) again: it needs a plan because it changes"),
        ("fetch", {"url": "https://a.example/b"}, "(a.example) again: it needs a plan because it"),
        ("mcp__pond__drain", {}, "call mcp__pond__drain again: it needs a plan because it leaves"),
        ("shell", {"command": "ls", "network": ["a.example"]}, "because it leaves the sandbox"),
        ("create_task", {"instruction": "Count"}, "because it starts a task of its own"),
    ],
)
def test_adaptive_needs_a_plan_for_what_has_effects(
    tool: str, arguments: dict[str, Any], why: str
) -> None:
    turn = adaptive()
    assert why in corrections(add_reply(turn, call("a", tool, **arguments)))["a"]


def test_adaptive_needs_a_plan_for_a_command_that_is_not_isolated() -> None:
    events = add_reply(adaptive(isolated=False), call("a", "shell", command="ls"))
    assert not_run(events) == {"a": "plan"}


def test_a_call_that_is_denied_takes_nothing_of_the_allowance() -> None:
    turn = adaptive()
    turn.config = msgspec.structs.replace(turn.config, policy=Policy(deny=("read_file(a.txt)",)))
    add_reply(turn, read("a"), read("b"), read("c"))
    assert run_calls(turn) == ("b", "c")


def test_calls_of_the_last_reply_are_shown_as_not_run() -> None:
    turn = start_turn(run_config(limits=RunLimits(max_iterations=1)))
    add_reply(turn, read("a"))
    run_calls(turn)
    assert next_ask(turn).final
    assert not_run(add_reply(turn, read("b"), write("c"))) == {"b": "end", "c": "end"}
    assert turn.not_run == 2
    assert outcome(turn).stop_reason == "max_iterations"


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
