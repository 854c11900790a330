"""The state of a run with subtasks."""

from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.ids import TaskId


def test_the_ends_that_the_model_knows_are_stored() -> None:
    state = SubtaskState(creates=True).with_told([TaskId("task-2"), TaskId("task-1")])
    states = state.added_to({})
    assert states["subtasks"].fields == {"told": ["task-1", "task-2"], "creates": True}
    assert SubtaskState.of(states) == state
