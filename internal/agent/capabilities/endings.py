"""Endings: the ways in which an attempt of a run ends, and the actions that follow."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from internal.agent.domain.errors import RunHandedOver, RunStopped
from internal.agent.domain.react.steps import AwaitTasks, Done, Pause

Departure = Literal["ended", "stopped", "handed_over", "lost"]
"""Why a run leaves this process. `lost`: another process has it, or it cannot continue."""

AttemptEnd = Done | RunStopped | Pause | AwaitTasks | RunHandedOver
"""The end of an attempt: for good, by a person, or so that the run continues later."""


class Ending(NamedTuple):
    """The actions at the end of an attempt of a run.

    Without a `departure` the run waits, and this process keeps everything that it holds for it.
    Open calls are closed unless they are to run again, and the checkpoint is dropped unless the run
    failed.
    """

    departure: Departure | None
    closes_calls: bool = False
    records_output: bool = False
    records_worktree: bool = False
    records_changes: bool = False
    saves_later: bool = False
    drops_checkpoint: bool = False
    awaits_tasks: bool = False


ENDINGS: Mapping[type[AttemptEnd], Ending] = {
    Done: Ending(
        "ended",
        closes_calls=True,
        records_output=True,
        records_worktree=True,
        records_changes=True,
        drops_checkpoint=True,
    ),
    RunStopped: Ending(
        "stopped",
        closes_calls=True,
        records_worktree=True,
        records_changes=True,
        saves_later=True,
        drops_checkpoint=True,
    ),
    Pause: Ending(None, closes_calls=True, records_changes=True),
    AwaitTasks: Ending(None, awaits_tasks=True),
    RunHandedOver: Ending("handed_over"),
}
