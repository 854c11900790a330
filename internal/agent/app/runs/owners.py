"""Owners: whether the processes that execute runs still do."""

from collections.abc import Iterable

from internal.agent.app.processes.lease_watch import Lease, LeaseState, LeaseWatch
from internal.agent.domain.tasks import Run
from internal.agent.ports.runtime import Clock, Processes
from internal.agent.store.runs import HeldRun


class OwnerWatch:
    """Decides which runs have lost their process.

    A process of this machine has lost its runs when it has ended; the lease decides about any
    other. A stopped process keeps its runs, unless others could continue them: on a database with
    several gateways and workers their leases always count, those of terminals as before.

    Args:
        is_shared: several gateways and workers may serve the database.
    """

    def __init__(
        self,
        processes: Processes,
        clock: Clock,
        lease_seconds: float,
        *,
        is_shared: bool = False,
    ) -> None:
        self._watch = LeaseWatch(processes, clock, lease_seconds)
        self._is_shared = is_shared

    def find_lost(self, held: Iterable[HeldRun]) -> list[Run]:
        """Return the runs, of all held ones, that no process executes any more."""
        held = list(held)
        states = self._watch.look(Lease(run.id, run.owner, lease) for run, lease in held)
        return [run for run, _ in held if self._is_lost(run, states[run.id])]

    def _is_lost(self, run: Run, state: LeaseState) -> bool:
        is_answered = run.terminal and run.status == "queued" and run.fence > 0
        if is_answered and state.has_ended:
            return True  # any process may continue it: nothing is lost
        if state.is_alive and (run.terminal or not self._is_shared):
            return False
        return state.is_over
