"""The dispatcher of a terminal: executes the terminal's own runs in its process."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial

from internal.agent.app.runs.active import ActiveRuns, claim_run
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.recovery import Recovery
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.errors import LeaseLost, NotFound, RunExit, StoreUnavailable
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.events.types import LifecycleUpdated
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import ENDED, Run
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores
from internal.dispatch.leases import LeaseKeeper

logger = logging.getLogger(__name__)

CLAIM_INTERVAL_SECONDS = 1.0
"""Interval of attempts to claim a run whose lane is held by another process."""

CLAIMS_PER_RECOVERY = 5

ANSWER_POLL_SECONDS = 1.0
"""Interval at which a waiting run is checked for an answer given in another process."""

READY_POLL_SECONDS = 1.0
"""Interval of the search for queued runs that no event of this process announced."""

_MAX_READY = 100
"""Ready runs that are read at once."""


class TerminalDispatcher:
    """Executes the runs of its terminal, beside other processes on the same data folder."""

    def __init__(
        self,
        database: Database,
        stores: Stores,
        clock: Clock,
        *,
        leases: LeaseKeeper,
        recovery: Recovery,
        supervisor: Supervisor,
    ) -> None:
        self._database = database
        self._stores = stores
        self._clock = clock
        self._leases = leases
        self._recovery = recovery
        self._supervisor = supervisor
        self._active = ActiveRuns()
        self._wake_event = asyncio.Event()
        self._ready_event = asyncio.Event()

    def wake(self) -> None:
        """Check waiting runs for an answer, claim queued ones, and look for others, now."""
        self._wake_event.set()
        self._wake_event = asyncio.Event()  # each run holds the one that it waits for
        self._ready_event.set()

    def on_event(self, record: EventRecord) -> None:
        """Wake up when an event announces that a run is queued or over."""
        envelope = record.envelope
        if envelope is None or not isinstance(envelope.payload, LifecycleUpdated):
            return
        if envelope.payload.status != "running":
            self.wake()

    async def keep_leases(self) -> None:
        """Renew the leases of this terminal and cancel runs that it must not execute.

        Goes on until cancelled. `execute` needs it.
        """
        with self._database.watch(self.wake):
            await self._leases.run(self._active, self._supervisor)

    async def watch_ready(self, start: Callable[[Run], None]) -> None:
        """Call `start` with the queued runs of this terminal that can be executed.

        Goes on until cancelled. A run is passed again until it is executed.
        """

        async def look() -> None:
            for run in await self.list_ready():
                start(run)

        await self._supervisor.repeat(
            "dispatcher", look, interval=READY_POLL_SECONDS, wake=self._ready_event
        )

    async def list_ready(self) -> list[Run]:
        """Return the queued runs of this terminal that can be executed now."""
        now, owner = rfc3339(self._clock.now()), self._leases.owner
        return await self._database.read(
            partial(self._stores.runs.list_ready, owner, now, _MAX_READY, only_own=True)
        )

    def reserve(self, _run_id: RunId) -> AbstractContextManager[None]:
        """Return None: runs are executed by `execute`."""
        return nullcontext()

    def cancel(self, run_id: RunId, reason: RunExit) -> bool:
        """Cancel a run of this process. False when this process does not execute it."""
        return self._active.cancel(run_id, reason)

    async def execute(
        self, run_id: RunId, coordinator: AgentCoordinator, *, wait_for_answers: bool = True
    ) -> None:
        """Execute a queued run of this terminal when its lane is free. Return when it has ended.

        While the run waits for an answer it stays with this terminal, regardless of who answers,
        and can be abandoned by cancelling the call. Without `wait_for_answers` it is released
        instead, so that another process resumes it. A run that waits for its subtasks stays.

        Raises:
            NotFound: there is no such run.
            LeaseLost: another process has taken it over and continues it.
            StoreError: it cannot be stored any more.
        """
        claimed = False
        while (run := await self._claim_when_free(run_id)) is not None:
            claimed = True
            try:
                await coordinator.execute_task(self._active.add(run))
            finally:
                self._active.remove(run_id)
            if not wait_for_answers and await self._leave_to_others(run_id):
                return
            await self._wait_for_answer(run_id)
        run = await self._load(run_id)
        if claimed and run.status not in ENDED:
            raise LeaseLost(
                f"Another process continues the task {run.task_id}, because this terminal was"
                f" stopped. Follow it with: larkspur watch {run.task_id}"
            )

    async def requeue(self, run_id: RunId) -> None:
        """Queue a run of this terminal again whose execution could not be stored.

        Raises:
            StoreUnavailable: this cannot be stored either.
        """
        run = await self._load(run_id)
        if run.status == "running" and run.owner == self._leases.owner:
            await self._recovery.retry_unstored(run)

    async def adopt(self, run_id: RunId) -> bool:
        """Give a queued run without an owner to this terminal. False when it is not such a run."""
        adopt = partial(self._stores.runs.adopt, run_id, self._leases.owner, self._leases.expiry())
        return await self._database.write(adopt)

    async def release(self, run_id: RunId) -> None:
        """Let other processes resume a waiting run. A run in another state is not changed."""
        release = partial(self._stores.runs.release, run_id, self._leases.owner)
        await self._database.write(release)

    async def _leave_to_others(self, run_id: RunId) -> bool:
        """Release the run if it waits for a person. Return whether it is not to be executed here.

        Its subtasks may have ended since it began to wait for them: queued again, it stays here.
        """

        def release() -> Write[bool]:
            run = yield from self._stores.runs.get(run_id)
            if run is None or not run.is_settled:
                return False
            yield from self._stores.runs.release(run_id, self._leases.owner)
            return True

        return await self._database.write(release)

    async def _claim_when_free(self, run_id: RunId) -> Run | None:
        """Claim the run when its lane is free. None when it is not queued any more."""
        attempts = 0
        while True:
            wake, now = self._wake_event, rfc3339(self._clock.now())
            run = await self._database.write(
                partial(
                    claim_run,
                    self._stores,
                    run_id,
                    self._leases.owner,
                    lease_until=self._leases.expiry(),
                    now=now,
                    host=self._leases.host,
                    anywhere=True,
                )
            )
            if run is not None:
                return run
            if (await self._load(run_id)).status != "queued":
                return None
            await _wait(wake, CLAIM_INTERVAL_SECONDS)
            attempts += 1
            if not attempts % CLAIMS_PER_RECOVERY:  # the lane may be held by a dead process
                await self._recovery.recover_expired_leases()

    async def _wait_for_answer(self, run_id: RunId) -> None:
        """Return when the run does not wait for an answer any more."""
        while True:
            wake = self._wake_event
            try:
                if (await self._load(run_id)).status != "waiting":
                    return
                await self._recovery.expire_questions()
                await self._recovery.end_waits()
            except StoreUnavailable as error:
                logger.warning("questions cannot be read", extra={"reason": str(error)})
            await _wait(wake, ANSWER_POLL_SECONDS)

    async def _load(self, run_id: RunId) -> Run:
        run = await self._database.read(partial(self._stores.runs.get, run_id))
        if run is None:
            raise NotFound(f"There is no run {run_id}.")
        return run


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, at most for this time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
