"""Owners: whether the processes that execute runs still do."""

from collections.abc import Iterable

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run
from internal.agent.ports.runtime import Clock, Processes, ProcessIdentity
from internal.agent.store.runs import HeldRun

_MAX_GAP_SECONDS = 60.0
"""After a longer time without a look this process, and perhaps the machine, was stopped."""


class OwnerWatch:
    """Decides which runs have lost their process.

    A process of this machine has lost its runs when it has ended; its lease does not matter, so a
    stopped one keeps them. The lease decides about any other: it has ended when it was not renewed
    for `lease_seconds` of the monotonic clock of this process, so that a wall clock that jumps and
    a machine that sleeps end no lease. Only the first look trusts the wall clock.
    """

    def __init__(self, processes: Processes, clock: Clock, lease_seconds: float) -> None:
        self._processes = processes
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._seen: dict[RunId, tuple[str, float]] = {}
        """The lease of each held run, and since when it is the same."""
        self._last_look: float | None = None

    def find_lost(self, held: Iterable[HeldRun]) -> list[Run]:
        """Return the runs, of all held ones, that no process executes any more."""
        held, now = list(held), self._clock.monotonic()
        is_first = self._last_look is None
        if self._last_look is None or now - self._last_look > _MAX_GAP_SECONDS:
            self._seen.clear()
        self._last_look = now
        before, self._seen = self._seen, {}
        for run, lease in held:
            last, since = before.get(run.id, (lease, now))
            self._seen[run.id] = lease, since if lease == last else now
        alive = {owner: self._is_alive(owner) for owner in {run.owner for run, _ in held}}
        wall = rfc3339(self._clock.now())
        return [
            run
            for run, lease in held
            if _is_lost(
                run,
                alive[run.owner],
                lease < wall if is_first else now - self._seen[run.id][1] >= self._lease_seconds,
            )
        ]

    def _is_alive(self, owner: str) -> bool | None:
        process = ProcessIdentity.parse(owner)
        return None if process is None else self._processes.is_alive(process)


def _is_lost(run: Run, is_alive: bool | None, lease_has_ended: bool) -> bool:
    is_answered = run.terminal and run.status == "queued" and run.fence > 0
    if is_answered and lease_has_ended:
        return True  # any process may continue it: nothing is lost
    return lease_has_ended if is_alive is None else not is_alive
