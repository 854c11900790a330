"""Owners: whether the processes that execute runs still do."""

from collections.abc import Iterable

from internal.agent.app.processes.lease_watch import Lease, LeaseState, LeaseWatch
from internal.agent.domain.tasks import Run
from internal.agent.ports.runtime import Clock, Processes
from internal.agent.store.runs import HeldRun


class OwnerWatch:
    """Decides which runs have lost their process.

    Gateways and workers have lost their runs when they are known to have ended, or when their
    lease has. A terminal of this machine keeps its runs as long as it lives, also while a person
    has stopped it; the lease decides about one that cannot be checked.
    """

    def __init__(self, processes: Processes, clock: Clock, lease_seconds: float) -> None:
        self._watch = LeaseWatch(processes, clock, lease_seconds)

    def find_lost(self, held: Iterable[HeldRun]) -> list[Run]:
        """Return the runs, of all held ones, that no process executes any more."""
        held = list(held)
        states = self._watch.look(Lease(run.id, run.owner, lease) for run, lease in held)
        return [run for run, _ in held if _is_lost(run, states[run.id])]


def _is_lost(run: Run, state: LeaseState) -> bool:
    is_answered = run.terminal and run.status == "queued" and run.fence > 0
    if is_answered and state.has_ended:
        return True  # any process may continue it: nothing is lost
    if run.terminal and state.is_alive is not None:
        return not state.is_alive
    return state.is_over
