"""What is at work in a session, and what waits in it for a person."""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

_ENDED = {"completed", "failed", "cancelled"}


@dataclass
class RunState:
    """A run that has not ended."""

    task_id: str
    status: str
    since: float
    """When it began to run, in seconds since 1970."""
    tokens: int = 0
    thinking: bool = False
    tools: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Calls under way, by id."""
    progress: str = ""
    begun: bool = False
    """It was at work before: what follows now comes after a pause."""


class ActiveRuns:
    """The runs of a session that have not ended, by id, oldest first."""

    def __init__(self) -> None:
        self.runs: dict[str, RunState] = {}
        self.ended: deque[str] = deque(maxlen=64)
        """The tasks that ended, oldest first."""

    @property
    def current(self) -> RunState | None:
        """The run at work, else the one that is next; one that waits for a person is neither."""
        running = [run for run in self.runs.values() if run.status == "running"]
        queued = [run for run in self.runs.values() if run.status == "queued"]
        return next(iter(running or queued), None)

    @property
    def open(self) -> RunState | None:
        """The run that a stop is meant for: the one at work, else the one that waits longest."""
        return self.current or next(iter(self.runs.values()), None)

    def expect(self, run_id: str, task_id: str, status: str) -> None:
        """Count with a run before its first event is here."""
        if task_id not in self.ended and run_id not in self.runs:
            self.runs[run_id] = RunState(task_id, status, time.time())

    def moved(self, event: Mapping[str, Any], status: str) -> bool:
        """Take a run's new status; True when a run begins."""
        run_id, batch = event["run_id"], datetime.fromisoformat(event["timestamp"]).timestamp()
        if status in _ENDED:
            return False  # the terminal event follows
        run = self.runs.setdefault(run_id, RunState(event["task_id"], "", batch))
        if status == "running" != run.status:
            run.since = batch
        begins = status == "running" and not run.begun
        run.status, run.begun = status, run.begun or begins
        return begins

    def over(self, event: Mapping[str, Any]) -> None:
        """Forget a run that has ended."""
        self.runs.pop(event["run_id"], None)
        self.ended.append(event["task_id"])
