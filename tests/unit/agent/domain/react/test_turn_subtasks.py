"""The Turn with calls that create subtasks and wait for them."""

import msgspec

from internal.agent.domain.delegation.requests import DELEGATION_SPECS
from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.messages import ToolResult
from internal.agent.domain.react.steps import Act, AwaitTasks
from internal.agent.domain.react.turn import OUTCOME_UNKNOWN, Turn
from internal.agent.domain.tasks import TaskWait
from tests.support.turn_driver import (
    TOOLS,
    add_reply,
    call,
    last_results,
    next_ask,
    read,
    run_config,
    start_turn,
)

FIRST = TaskId("task-1")
WAIT = TaskWait((FIRST,), "2026-01-01T00:00:00Z")


def turn_with_call() -> Turn:
    """Return a Turn in which a call of `subagent` runs beside one of `read_file`."""
    config = msgspec.structs.replace(run_config(), tools=(*TOOLS, *DELEGATION_SPECS))
    turn = start_turn(config)
    add_reply(turn, call("a", "subagent", prompt="dig"), read("b"))
    turn.mark_started(["a", "b"])
    return turn


def test_a_waiting_call_runs_again_when_its_run_was_woken() -> None:
    turn = turn_with_call()
    turn.await_tasks("a", WAIT)
    assert isinstance(step := turn.next(), Act)
    assert [each.call_id for each in step.calls] == ["b"]
    turn.add_tool_result(ToolResult("b", "ok"))
    assert turn.next() == AwaitTasks({"a": WAIT})
    turn.end_waits()
    assert isinstance(step := turn.next(), Act)
    assert [each.call_id for each in step.calls] == ["a"]
    turn.add_tool_result(ToolResult("a", "dug"))
    next_ask(turn)
    assert turn.waits == {}


def test_a_call_for_subtasks_is_repeated_after_any_number_of_crashes() -> None:
    """The model must know its created subtasks, or it would create them again."""
    turn = turn_with_call()
    assert [each.call_id for each in turn.settle_interrupted(repeat=False)] == ["a"]
    turn.add_tool_result(ToolResult("a", "created"))
    results = last_results(turn)
    assert (results["a"].text, results["b"].text) == ("created", OUTCOME_UNKNOWN)


def test_a_run_that_continues_a_failed_one_has_not_its_subtasks() -> None:
    """Their files were sent with the failed run, and its other tasks are reported for it."""
    turn = turn_with_call()
    turn.await_tasks("a", WAIT)
    turn.remember(SubtaskState(frozenset({FIRST}), creates=True))
    turn.end("error", "broken")
    turn.resume_as(RunId("run-2"), "Go on.", 7)
    next_ask(turn)
    assert (turn.waits, SubtaskState.of(turn.states)) == ({}, None)
