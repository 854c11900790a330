"""Recovery of runs and questions, on a real database."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.runs.owners import OwnerWatch
from internal.agent.app.runs.recovery import (
    MAX_BACKOFF_SECONDS,
    TERMINAL_CLOSED,
    Recovery,
    backoff,
    is_interrupted,
)
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.observability.processes import SystemProcesses
from tests.support.store_records import a_run, a_session, a_task, add_running_run


class FixedClock:
    """A clock one minute after the leases of the test runs."""

    def now(self) -> datetime:
        return datetime(2026, 1, 31, 8, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def recovery(database: Database, stores: Stores, broadcaster: EventBroadcaster) -> Recovery:
    return recovery_of(database, stores, broadcaster)


def recovery_of(database: Database, stores: Stores, broadcaster: EventBroadcaster) -> Recovery:
    """Return the recovery of a process that has just started."""
    clock = FixedClock()
    owners = OwnerWatch(SystemProcesses(), clock, 30.0)
    return Recovery(database, stores, broadcaster=broadcaster, clock=clock, owners=owners)


async def lost(database: Database, stores: Stores, *, terminal: bool = False) -> Run:
    """Store a running run whose lease has expired."""
    await database.write(lambda: stores.sessions.add(a_session()))
    await database.write(lambda: stores.tasks.add(a_task(), None))
    owner = "worker" if terminal else ""
    return await add_running_run(database, stores, a_run(terminal=terminal, owner=owner))


async def get(database: Database, stores: Stores, run: Run) -> Run:
    found = await database.read(partial(stores.runs.get, run.id))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("fields", "interrupted"),
    [
        ({"terminal": False}, False),
        ({"terminal": True, "status": "running", "fence": 1}, True),
        ({"terminal": True, "status": "queued", "fence": 0}, True),
        ({"terminal": True, "status": "queued", "fence": 1}, False),
    ],
)
def test_terminal_runs_are_interrupted_unless_an_answer_queued_them(
    fields: dict[str, Any], *, interrupted: bool
) -> None:
    assert is_interrupted(a_run(**fields)) == interrupted


async def test_a_run_with_an_expired_lease_is_requeued(
    database: Database, stores: Stores, broadcaster: EventBroadcaster
) -> None:
    run = await lost(database, stores)
    own, other = (recovery_of(database, stores, broadcaster) for _ in range(2))
    assert await own.recover_expired_leases({run.id}) == []
    assert [each.id for each in await other.recover_expired_leases()] == [run.id]
    assert (await get(database, stores, run)).status == "queued"


async def test_a_run_of_a_closed_terminal_fails(
    database: Database, stores: Stores, recovery: Recovery
) -> None:
    run = await lost(database, stores, terminal=True)
    await recovery.recover_expired_leases()
    failed = await get(database, stores, run)
    assert (failed.status, failed.stop_reason, failed.error) == (
        "failed", "interrupted", TERMINAL_CLOSED,
    )  # fmt: skip
    stored = await database.read(partial(stores.events.list_by_run, run.id))
    assert stored[-1].event == "workflow.result.final"


async def test_a_run_of_a_living_terminal_stays_after_its_lease(
    database: Database, stores: Stores, recovery: Recovery
) -> None:
    owner = SystemProcesses().current("terminal-1")
    await database.write(lambda: stores.sessions.add(a_session()))
    await database.write(lambda: stores.tasks.add(a_task(), None))
    run = a_run(terminal=True, owner=str(owner))
    run = await add_running_run(database, stores, run, str(owner))

    assert await recovery.recover_expired_leases() == []
    assert (await get(database, stores, run)).status == "running"


async def test_a_run_of_a_dead_terminal_fails_within_its_lease(
    database: Database, stores: Stores, recovery: Recovery
) -> None:
    owner = str(SystemProcesses().current("terminal-1")._replace(start="1"))
    await database.write(lambda: stores.sessions.add(a_session()))
    await database.write(lambda: stores.tasks.add(a_task(), None))
    run = a_run(terminal=True, owner=owner)
    run = await add_running_run(database, stores, run, owner)
    await database.write(partial(stores.runs.renew_leases, owner, "9999"))

    assert [each.id for each in await recovery.recover_expired_leases()] == [run.id]
    assert (await get(database, stores, run)).error == TERMINAL_CLOSED


async def test_runs_that_an_owner_dropped_are_requeued(
    database: Database, stores: Stores, recovery: Recovery
) -> None:
    run = await lost(database, stores)
    assert await recovery.requeue_orphaned("worker", {run.id}) == 0
    assert await recovery.requeue_orphaned("worker", set[RunId]()) == 1
    assert (await get(database, stores, run)).status == "queued"


async def test_a_restart_requeues_the_runs_of_the_dead_dispatcher(
    database: Database, stores: Stores, recovery: Recovery
) -> None:
    run = await lost(database, stores)
    renew = partial(stores.runs.renew_leases, "worker", "2030")
    await database.write(renew)
    assert await recovery.recover_expired_leases() == []
    assert await recovery.recover_after_restart() == 1
    assert (await get(database, stores, run)).status == "queued"


def test_the_wait_before_a_retry_doubles_up_to_a_minute() -> None:
    waits = [backoff(failures).total_seconds() for failures in (0, 1, 2, 3, 4, 5, 100)]
    assert waits == [0, 0, 1, 2, 4, 8, MAX_BACKOFF_SECONDS]


@pytest.mark.parametrize(("crashed", "counted"), [(True, 2), (False, 0)])
async def test_only_a_crash_is_counted_and_every_failed_start_backs_off(
    database: Database, stores: Stores, recovery: Recovery, *, crashed: bool, counted: int
) -> None:
    run = await lost(database, stores)
    for attempt in (1, 2):
        if crashed:
            assert await recovery.recover_after_restart() == 1
        else:
            assert await recovery.requeue_orphaned("worker", set[RunId]()) == 1
        assert (await get(database, stores, run)).status == "queued"
        claim = partial(stores.runs.claim, run.id, "worker", lease_until="2026")
        claimed = await database.write(partial(claim, now=rfc3339(FixedClock().now())))
        assert (claimed is None) == (attempt == 2)
    stored = await get(database, stores, run)
    assert (stored.attempt, stored.crashes) == (2, counted)
