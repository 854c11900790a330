"""Leases: a process says that it is alive, and hears what is asked of its runs."""

import asyncio
import logging
from datetime import timedelta
from functools import partial

from internal.agent.app.runs.active import ActiveRuns
from internal.agent.domain.errors import RunStopped, StoreUnavailable
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores

logger = logging.getLogger(__name__)

LISTEN_SECONDS = 0.5
"""How often stop requests of other processes are looked for."""

RENEWALS = 3
"""A lease is renewed so many times in its length."""


class Leases:
    """The leases of one owner: a process that runs things."""

    def __init__(
        self, owner: str, seconds: float, database: Database, stores: Stores, clock: Clock
    ) -> None:
        self.owner = owner
        self._seconds = seconds
        self._database = database
        self._runs = stores.runs
        self._clock = clock
        self.failure = ""
        """Why the database could not be used at the last look; "" when it could."""
        self.since = rfc3339(clock.now())
        """Since when that is so."""

    def until(self) -> str:
        """Return the end of a lease that begins now."""
        return rfc3339(self._clock.now() + timedelta(seconds=self._seconds))

    async def keep(self, active: ActiveRuns) -> None:
        """Renew the leases and make stopped runs leave, until cancelled."""
        renewed = self._clock.monotonic()
        while True:
            await asyncio.sleep(LISTEN_SECONDS)
            try:
                for run_id, stop in await self._database.read(
                    partial(self._runs.list_stop_requests, self.owner)
                ):
                    active.cancel(run_id, RunStopped(stop.by, stop.via, stop.reason))
                if self._clock.monotonic() - renewed >= self._seconds / RENEWALS:
                    await self._database.write(
                        partial(self._runs.renew_leases, self.owner, self.until())
                    )
                    renewed = self._clock.monotonic()
                self._note("")
            except StoreUnavailable as error:
                self._note(str(error))

    def _note(self, failure: str) -> None:
        if bool(failure) != bool(self.failure):
            self.since = rfc3339(self._clock.now())
            logger.warning("leases kept again" if not failure else f"leases not kept: {failure}")
        self.failure = failure
