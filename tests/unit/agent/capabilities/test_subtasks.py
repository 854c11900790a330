"""Calls that create subtasks and tell their ends."""

from typing import Any

from internal.agent.capabilities.capability import CallReport, RunCall
from internal.agent.capabilities.subtasks import SubtasksCapability
from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.events.types import TaskCompleted
from internal.agent.domain.ids import TaskId
from internal.agent.ports.tools import ToolOutcome
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from tests.support.turn_driver import run_config, start_turn

NOTHING: Any = None
TOLD = TaskId("task-1")
END = TaskCompleted(
    task_id=TOLD, number=1, status="completed", stop_reason="final_answer", preview="dug"
)


async def tells_the_end() -> CallReport:
    return CallReport("dug", False, (), (END,), ToolOutcome("dug", told_tasks=(TOLD,)))


async def test_an_end_that_the_model_knows_is_not_told_again() -> None:
    turn = start_turn(run_config())
    call = RunCall(NOTHING, turn, NOTHING, NOTHING)
    subtasks = SubtasksCapability(Stores(), SystemClock())
    first = await subtasks.around_call(call, tells_the_end)
    second = await subtasks.around_call(call, tells_the_end)
    assert (first.events, second.events) == ((END,), ())
    assert (first.text, second.text) == ("dug", "dug")
    assert SubtaskState.of(turn.states) == SubtaskState(frozenset({TOLD}))
