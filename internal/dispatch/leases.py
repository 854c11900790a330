"""Leases: a process renews them while it is alive, and receives stop requests for its runs."""

import asyncio
from datetime import timedelta
from functools import partial

from internal.agent.app.hosts.host import ONLY_HOST
from internal.agent.app.runs.active import ActiveRuns
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.errors import LeaseLost
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

POLL_INTERVAL_SECONDS = 0.5
"""Maximum interval between reads of stop requests. A commit of another process triggers one."""

RENEWALS_PER_LEASE = 3


class LeaseKeeper:
    """Keeps the leases of one owner, a process that executes runs.

    Args:
        owner: the name that the process claims runs with.
        seconds: the length of a lease.

    Attributes:
        host: the host of the process, which claims the runs whose files it has or can get.
    """

    host = ONLY_HOST

    def __init__(
        self, owner: str, seconds: float, *, database: Database, stores: Stores, clock: Clock
    ) -> None:
        self.owner = owner
        self.seconds = seconds
        self._database = database
        self._runs = stores.runs
        self._stores = stores
        self._clock = clock
        self._renewed = self._times()

    def expiry(self) -> str:
        """Return the end of a lease that starts now, RFC 3339."""
        return rfc3339(self._clock.now() + timedelta(seconds=self.seconds))

    async def run(self, active: ActiveRuns, supervisor: Supervisor) -> None:
        """Renew the leases and cancel runs that this process must not execute, until cancelled.

        These are runs that were asked to stop, and runs that another process has taken over while
        this one was stopped.
        """
        self._renewed = self._times()
        keep = partial(self._keep, active)
        wake = asyncio.Event()
        with self._database.watch(wake.set):
            await supervisor.repeat("leases", keep, interval=POLL_INTERVAL_SECONDS, wake=wake)

    async def _keep(self, active: ActiveRuns) -> None:
        read = partial(self._runs.list_stop_requests, self.owner)
        for run_id, stop in await self._database.read(read, is_short=True):
            active.cancel(run_id, stop.to_error())
        now = self._times()
        # a jump of the wall clock also changes which leases others see as ended
        passed = max(abs(now[0] - self._renewed[0]), now[1] - self._renewed[1])
        # after a failed write the renewal also finds out whether the disk can be written again
        if passed >= self.seconds / RENEWALS_PER_LEASE or self._database.state.failure:
            await self._renew(active)
            self._renewed = now

    async def _renew(self, active: ActiveRuns) -> None:
        claimed = [each.run.id for each in active]
        owned = await self._database.write(partial(self._renew_rows, self.expiry()))
        for run_id in claimed:
            if run_id not in owned:
                active.cancel(run_id, LeaseLost(f"Another process has taken over {run_id}."))

    def _renew_rows(self, lease_until: str) -> Write[set[RunId]]:
        yield from self._stores.processes.renew(self.owner, lease_until)
        yield from self._stores.leaderships.renew(self.owner, lease_until)
        return (yield from self._runs.renew_leases(self.owner, lease_until))

    def _times(self) -> tuple[float, float]:
        """Return the seconds of the wall clock and of the monotonic clock."""
        return self._clock.now().timestamp(), self._clock.monotonic()
