"""The state of a run with subtasks."""

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import replace

from internal.agent.domain.capability_states import CapabilityState
from internal.agent.domain.ids import TaskId


class SubtaskState(CapabilityState, frozen=True):
    """Subtasks whose end the model was `told`, and whether the run `creates` some itself."""

    capability: ClassVar[str] = "subtasks"

    told: frozenset[TaskId] = frozenset()
    creates: bool = False

    def with_told(self, task_ids: Iterable[TaskId]) -> "SubtaskState":
        """Return the state in which the model knows these ends too."""
        return replace(self, told=self.told | frozenset(task_ids))
