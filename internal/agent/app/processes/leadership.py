"""Leaderships: work that one process at a time does, such as sending the messages of an account."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from internal.agent.app.background_task import background_task
from internal.agent.app.processes.lease_watch import Lease, LeaseWatch
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.errors import StoreError, StoreUnavailable
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.ports.runtime import Clock, Processes
from internal.agent.store.database import Database, Write
from internal.agent.store.runs import LeaderFence, LeadershipRow
from internal.agent.store.stores import Stores

CHECK_SECONDS = 1.0
"""How often a leader looks whether it is still one, and another process whether there is one."""


class Leadership:
    """The right to do the work of a name. The process renews it with its other leases.

    The right ends when the lease was not renewed in time, as in a process that was stopped. It
    learns this within a second after it continues; writes that must not happen then are conditional
    on `held`.

    Args:
        name: such as `lark:cli_a1`.
        owner: this process.
        seconds: the length of a lease.
        on_claim: what else is stored when this process becomes the leader.
    """

    def __init__(
        self,
        name: str,
        owner: str,
        seconds: float,
        *,
        database: Database,
        stores: Stores,
        clock: Clock,
        processes: Processes,
        on_claim: Callable[[], Write[None]] | None = None,
    ) -> None:
        self.name = name
        self._owner, self._seconds = owner, seconds
        self._database, self._clock = database, clock
        self._store = stores.leaderships
        self._watch = LeaseWatch(processes, clock, seconds)
        self._on_claim = on_claim
        self._held: LeaderFence | None = None
        self.is_elsewhere = False
        """Whether another process led when this one looked last."""

    @property
    def held(self) -> LeaderFence | None:
        """The claim of this process, None if it does not lead. Another process may lead already."""
        return self._held

    async def run(
        self, work: Callable[[], Coroutine[Any, Any, None]], supervisor: Supervisor
    ) -> None:
        """Do the work whenever this process leads, until cancelled.

        The work is cancelled when another process has become the leader. The leadership is released
        after the work has ended.
        """
        lead = partial(self._lead, work)
        await supervisor.repeat(f"{self.name} leader", lead, interval=CHECK_SECONDS)

    async def is_held(self) -> bool:
        """Return True if this process leads.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        row = await self._database.read(partial(self._store.get, self.name))
        return self._held is not None and row is not None and row.fence == self._held.fence

    async def _lead(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._held = await self._claim()
        self.is_elsewhere = self._held is None
        if self._held is None:
            return
        try:
            async with background_task(work()) as working:
                while not working.done() and not await self._is_deposed():
                    await asyncio.wait({working}, timeout=CHECK_SECONDS)
        finally:
            held, self._held = self._held, None
            with suppress(StoreError):  # it ends with the lease
                await self._database.write(partial(self._store.release, held))

    async def _is_deposed(self) -> bool:
        try:
            return not await self.is_held()
        except StoreUnavailable:  # nothing can be written meanwhile either
            return False

    async def _claim(self) -> LeaderFence | None:
        seen = await self._database.read(partial(self._store.get, self.name))
        if seen is not None and not self._is_free(seen):
            return None
        return await self._database.write(partial(self._claim_row, seen))

    def _is_free(self, seen: LeadershipRow) -> bool:
        if seen.owner in {"", self._owner}:
            return True
        lease = Lease(self.name, seen.owner, seen.lease_until)
        return self._watch.look([lease])[self.name].is_over

    def _claim_row(self, seen: LeadershipRow | None) -> Write[LeaderFence | None]:
        until = rfc3339(self._clock.now() + timedelta(seconds=self._seconds))
        held = yield from self._store.claim(self.name, self._owner, until, seen)
        if held is not None and self._on_claim is not None:
            yield from self._on_claim()
        return held


class Leaderships:
    """Makes the leaderships of a process."""

    def __init__(
        self,
        owner: str,
        seconds: float,
        *,
        database: Database,
        stores: Stores,
        clock: Clock,
        processes: Processes,
    ) -> None:
        self._stores = stores
        self._make = partial(
            Leadership,
            owner=owner,
            seconds=seconds,
            database=database,
            stores=stores,
            clock=clock,
            processes=processes,
        )

    def of_account(self, account: str) -> Leadership:
        """Return the leadership of an account of a chat service, such as `lark:cli_a1`.

        Its leader takes the displays of runs from the leader before.
        """
        release = partial(self._stores.run_displays.release_all, account)
        return self._make(account, on_claim=release)

    def of_webhooks(self) -> Leadership:
        """Return the leadership of the process that sends events to webhooks."""
        return self._make("webhooks")
