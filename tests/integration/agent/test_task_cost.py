"""Database cost of a short task: bounds, so that it does not grow unnoticed."""

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from internal.agent.domain.ids import SessionId
from internal.config.home import prepare
from internal.storage.sqlite import writer
from internal.storage.sqlite.database import SqliteDatabase
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Reply

TASKS = 8

PERIODIC = frozenset(
    {"event_log_bounds", "held_runs", "ready_crashed_runs", "next_runs_of_people", "stop_requests"}
)
"""Statements of the loops that look for the work of other processes, also without any task."""


class Cost(NamedTuple):
    """The statements of the units of work of a task, by the thread that executed them."""

    writes: list[list[str]]
    reads: list[list[str]]
    commits: int

    @property
    def statements(self) -> int:
        return sum(map(len, (*self.writes, *self.reads)))


class Recorder:
    """Records the named statements of a database, in whatever thread."""

    def __init__(self) -> None:
        self.units: list[tuple[str, list[str]]] = []
        self._code = writer.execute.__code__
        self._open: dict[int, list[str]] = {}

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        """Record a call; installed as the profile function of threads."""
        if frame.f_code is not self._code:
            return
        thread = threading.current_thread()
        if event == "call":
            self._open[thread.native_id or 0] = []
        elif event == "c_call" and argument.__name__ in {"execute", "executemany"}:
            self._open[thread.native_id or 0].append(frame.f_locals["query"])
        elif event == "return":
            self.units.append((thread.name, self._open[thread.native_id or 0]))

    def take(self, commits: int) -> Cost:
        """Return the records since the last call, without the periodic statements."""
        units, self.units = self.units, []
        own = [(name, unit) for name, unit in units if unit and not PERIODIC.issuperset(unit)]
        return Cost(
            [unit for name, unit in own if name == "storage-writer"],
            [unit for name, unit in own if name != "storage-writer"],
            commits,
        )


@contextmanager
def recorded() -> Generator[Recorder]:
    """Record in this thread, and in threads started by the block."""
    recorder = Recorder()
    before = sys.getprofile(), threading.getprofile()
    sys.setprofile(recorder.profile)
    threading.setprofile(recorder.profile)
    try:
        yield recorder
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])


async def costs_of(here: Core, recorder: Recorder, *, kept: bool) -> list[Cost]:
    """Return the cost of each of several tasks, in one session or in one for each."""
    found: list[Cost] = []
    opened = here.services.database
    assert isinstance(opened, SqliteDatabase)
    session: SessionId | None = None
    for _ in range(TASKS):
        before = opened.commits
        made = await here.submit("hello", session)
        await here.end_of(made)
        session = made.session_id if kept else None
        found.append(recorder.take(opened.commits - before))
    return found


@pytest.mark.parametrize(("kept", "statements"), [(False, 36), (True, 36)])
async def test_a_task_costs_three_writes_and_one_read(
    tmp_path: Path, statements: int, *, kept: bool
) -> None:
    """The statements include the reads of a watcher. Always with SQLite."""
    with recorded() as recorder:
        async with open_agent(
            prepare(tmp_path / "home"), [Reply("word " * 10, pieces=10)] * TASKS
        ) as here:
            costs = await costs_of(here, recorder, kept=kept)
    # a busy machine makes some tasks dearer: deferred events are stored by themselves then
    cost = min(costs[1:], key=lambda each: each.statements)
    assert len(cost.writes) <= 3, cost.writes
    assert cost.commits <= 3
    reads = [unit for unit in cost.reads if "undelivered_messages" in unit]
    assert len(reads) == 1, cost.reads
    assert cost.statements <= statements, cost
