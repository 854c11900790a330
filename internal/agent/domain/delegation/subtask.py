"""Subtasks: tasks that a run created."""

from typing import Literal

import msgspec

from internal.agent.domain.ids import RunId, TaskId

MAX_SUBTASKS = 64
"""Subtasks below one outermost task."""
MAX_RUNNING = 8
"""Subtasks below one outermost task that run at the same time."""
MAX_DEPTH = 2
"""Maximum depth of tasks that create tasks: tasks of a subtask create none."""
PREVIEW_CHARACTERS = 120

WorkspaceChoice = Literal["shared", "own", "worktree"]
"""The folder of a subtask: that of its creator, a new one, or a copy of the creator's repository
with a branch of its own."""

ReportMode = Literal["group", "each", "silent"]
"""How subtasks that end after their creator are reported: all of a run together, each one, or not
at all."""


def subtask_path(number: int, role: str) -> str:
    """Return the display name in place of an id, such as `task 2 · analyst`."""
    return f"task {number} · {role}" if role else f"task {number}"


class Subtask(msgspec.Struct, frozen=True):
    """The place of a task that a run created.

    `number` counts the subtasks of the outermost task `root_task_id` from 1; `total` is their
    number when the call that created it was over. At most `max_parallel` subtasks of one call run
    at once. `call_id` is the call. `max_cost` is the limit in US dollars of the outermost task with
    all its subtasks, None for no limit.
    """

    root_task_id: TaskId
    root_run_id: RunId
    call_id: str
    number: int
    total: int
    role: str
    preview: str
    depth: int = 1
    max_parallel: int = MAX_RUNNING
    workspace: WorkspaceChoice = "shared"
    max_cost: float | None = None

    @property
    def path(self) -> str:
        """The display name in place of an id, such as `task 2 · analyst`."""
        return subtask_path(self.number, self.role)
