"""Leases of other processes: whether they have ended, and whether their owners live."""

from collections.abc import Iterable
from typing import NamedTuple

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.ports.runtime import Clock, Processes, ProcessIdentity

_MAX_GAP_SECONDS = 60.0
"""After a longer time without a look this process, and perhaps the machine, was stopped."""


class Lease(NamedTuple):
    """A lease: its name, the process that holds it, and its end (RFC 3339)."""

    name: str
    owner: str
    until: str


class LeaseState(NamedTuple):
    """Whether the owner of a lease lives, None if unknown, and whether the lease has ended."""

    is_alive: bool | None
    has_ended: bool

    @property
    def is_over(self) -> bool:
        """Whether another process may take the lease."""
        return self.has_ended or self.is_alive is False


class LeaseWatch:
    """Watches leases that other processes renew.

    A lease has ended when it was not renewed for `lease_seconds` of the monotonic clock of this
    process, so that a wall clock that jumps and a machine that sleeps end no lease. Only the first
    look trusts the wall clock.
    """

    def __init__(self, processes: Processes, clock: Clock, lease_seconds: float) -> None:
        self._processes = processes
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._seen: dict[str, tuple[str, float]] = {}
        """The end of each lease, and since when it is the same."""
        self._last_look: float | None = None

    def look(self, leases: Iterable[Lease]) -> dict[str, LeaseState]:
        """Return the states of all leases by name; leases that were left out are forgotten."""
        leases, now = list(leases), self._clock.monotonic()
        is_first = self._last_look is None
        if self._last_look is None or now - self._last_look > _MAX_GAP_SECONDS:
            self._seen.clear()
        self._last_look = now
        before, self._seen = self._seen, {}
        for name, _, until in leases:
            last, since = before.get(name, (until, now))
            self._seen[name] = until, since if until == last else now
        alive = {owner: self._is_alive(owner) for owner in {lease.owner for lease in leases}}
        wall = rfc3339(self._clock.now())
        return {
            name: LeaseState(
                alive[owner],
                until < wall if is_first else now - self._seen[name][1] >= self._lease_seconds,
            )
            for name, owner, until in leases
        }

    def _is_alive(self, owner: str) -> bool | None:
        process = ProcessIdentity.parse(owner)
        return None if process is None else self._processes.is_alive(process)
