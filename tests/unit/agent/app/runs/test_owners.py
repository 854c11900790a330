"""Detection of runs without a process, with clocks that jump and processes that stop."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from internal.agent.app.runs.owners import OwnerWatch
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.ports.runtime import ProcessIdentity
from internal.agent.store.runs import HeldRun
from tests.support.store_records import a_run

LEASE_SECONDS = 30.0
OWNER = ProcessIdentity("terminal-1", 42, "7", "1", "boot", "host")


class TwoClocks:
    """A wall clock that can jump, and a monotonic clock that cannot."""

    def __init__(self) -> None:
        self._wall = datetime(2026, 1, 31, 8, tzinfo=UTC)
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._wall

    def monotonic(self) -> float:
        return self._monotonic

    def jump(self, **by: float) -> None:
        self._wall += timedelta(**by)

    def wait(self, seconds: float) -> None:
        self.jump(seconds=seconds)
        self._monotonic += seconds


class KnownProcesses:
    """Processes with the state `alive`."""

    def __init__(self) -> None:
        self.alive: bool | None = None

    def is_alive(self, process: ProcessIdentity, /) -> bool | None:
        assert process == OWNER
        return self.alive


class Watched:
    """A watch, its clocks, and one run with an owner that renews its lease when told to."""

    def __init__(self, *, is_shared: bool = False, **fields: Any) -> None:
        self.clock = TwoClocks()
        self.processes = KnownProcesses()
        self.watch = OwnerWatch(self.processes, self.clock, LEASE_SECONDS, is_shared=is_shared)
        values = {"status": "running", "fence": 1, "owner": str(OWNER), "terminal": True, **fields}
        self._run = a_run(**values)
        self.renew()

    def renew(self) -> None:
        self._lease = rfc3339(self.clock.now() + timedelta(seconds=LEASE_SECONDS))

    def is_lost(self) -> bool:
        lost = self.watch.find_lost([HeldRun(self._run, self._lease)])
        assert lost in ([], [self._run])
        return bool(lost)

    def waits_long(self) -> list[bool]:
        """Look every ten seconds for longer than a lease, without a renewal."""
        found = []
        for _ in range(4):
            self.clock.wait(10.0)
            found.append(self.is_lost())
        return found


def test_run_of_a_dead_process_is_lost_within_its_lease() -> None:
    watched = Watched()
    watched.processes.alive = False
    assert watched.is_lost()


def test_run_of_a_stopped_process_is_never_lost() -> None:
    watched = Watched()
    watched.processes.alive = True
    watched.clock.jump(hours=1)
    assert not watched.is_lost()
    assert not any(watched.waits_long())


@pytest.mark.parametrize(
    ("is_shared", "is_terminal", "expected"),
    [
        (True, False, [False, False, True, True]),
        (True, True, [False] * 4),
        (False, False, [False] * 4),
    ],
)
def test_others_continue_the_runs_of_a_stopped_worker(
    is_shared: bool, is_terminal: bool, expected: list[bool]
) -> None:
    watched = Watched(is_shared=is_shared, terminal=is_terminal)
    watched.processes.alive = True
    assert not watched.is_lost()
    assert watched.waits_long() == expected


def test_answered_run_of_a_stopped_terminal_is_free_after_the_lease() -> None:
    watched = Watched(status="queued")
    watched.processes.alive = True
    assert not watched.is_lost()
    assert watched.waits_long() == [False, False, True, True]


def test_new_run_of_a_stopped_terminal_stays() -> None:
    watched = Watched(status="queued", fence=0)
    watched.processes.alive = True
    assert not any([watched.is_lost(), *watched.waits_long()])


@pytest.mark.parametrize("owner", [str(OWNER), "not a process"])
def test_lease_decides_when_the_process_cannot_be_checked(owner: str) -> None:
    watched = Watched(owner=owner)
    assert not watched.is_lost()
    assert watched.waits_long() == [False, False, True, True]


def test_first_look_trusts_the_wall_clock() -> None:
    watched = Watched()
    watched.clock.wait(LEASE_SECONDS + 1)
    assert watched.is_lost()


@pytest.mark.parametrize("hours", [1, -1])
def test_jump_of_the_wall_clock_ends_no_lease_before_a_full_lease(hours: int) -> None:
    watched = Watched()
    assert not watched.is_lost()
    watched.clock.jump(hours=hours)
    assert not watched.is_lost()
    watched.clock.wait(10.0)
    watched.renew()
    assert not watched.is_lost()
    assert watched.waits_long() == [False, False, True, True], "now the owner is gone"


def test_watch_that_was_stopped_itself_observes_for_a_full_lease_again() -> None:
    watched = Watched()
    assert not watched.is_lost()
    watched.clock.wait(3600)
    assert not watched.is_lost()
    assert watched.waits_long() == [False, False, True, True]
