"""Leaderships of one process of a test."""

from internal.agent.app.processes.leadership import Leaderships
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from internal.observability.processes import SystemProcesses


def make_leaderships(
    database: Database,
    stores: Stores,
    clock: Clock | None = None,
    *,
    owner: str = "gateway-1",
    seconds: float = 30.0,
) -> Leaderships:
    """Return the leaderships of a process that cannot be checked, only its leases."""
    return Leaderships(
        owner,
        seconds,
        database=database,
        stores=stores,
        clock=clock or SystemClock(),
        processes=SystemProcesses(),
    )
