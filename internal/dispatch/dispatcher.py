"""The dispatcher: starts queued runs in this process, beside the dispatchers of others."""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial

from internal.agent.app.background_task import background_task, wait_for_completion
from internal.agent.app.runs.active import ActiveRuns, claim_run
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.recovery import Recovery
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.errors import RunExit, RunHandedOver, StoreUnavailable
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.events.types import LifecycleUpdated
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import (
    ENDED,
    MAX_CRASHES,
    STEADY_SECONDS,
    ClaimedTask,
    Run,
    Task,
)
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.stores import Stores
from internal.dispatch.leases import LeaseKeeper

logger = logging.getLogger(__name__)

POLL_INTERVAL_SECONDS = 1.0
RECOVERY_INTERVAL_SECONDS = 1.0
"""Interval of the checks of other processes' runs."""
UPKEEP_INTERVAL_SECONDS = 10.0
"""Interval at which expired items are ended."""

MAX_CLAIMS = 8
"""Number of runs claimed at once, so that a burst is shared by all processes."""

_MAX_KNOWN = 100_000

MAX_ALONE_SECONDS = 60.0
"""For how long a run whose process died keeps the others of its kind from being started."""


class RunDispatcher:
    """Starts the first queued run of each free lane.

    Any number of dispatchers may work on a database: runs are claimed in a transaction in which no
    other process claims any. Among the runs whose process died, each dispatcher starts one at a
    time, which separates the run that kills its process from the runs that were executed beside it.

    Args:
        concurrency: the number of runs that are executed at once, 0 to execute none. Waiting runs
            not count.

    Attributes:
        may_start: whether runs can be executed now: the storage that all hosts share can be
            reached.
    """

    may_start: Callable[[], bool] = staticmethod(lambda: True)

    def __init__(
        self,
        database: Database,
        stores: Stores,
        clock: Clock,
        *,
        leases: LeaseKeeper,
        recovery: Recovery,
        supervisor: Supervisor,
        concurrency: int,
        poll_seconds: float = POLL_INTERVAL_SECONDS,
    ) -> None:
        self._database = database
        self._stores = stores
        self._clock = clock
        self._leases = leases
        self._recovery = recovery
        self._supervisor = supervisor
        self._concurrency = concurrency
        self._poll_seconds = poll_seconds
        self._active = ActiveRuns()
        self._starting: set[RunId] = set()
        self._queued: set[RunId] = set()
        """Queued runs that this process knows of and has not claimed."""
        self._ended: set[RunId] = set()
        """Runs of `_starting` that have ended."""
        self._is_informed = False
        """Whether no other process has announced a commit since `_queued` was read."""
        self._is_shared = database.messages is not None
        """Whether other processes may queue and execute runs as well."""
        self._start: Callable[[Run, ClaimedTask | None], None] | None = None
        """Starts the execution of a claimed run; None while nothing is dispatched."""
        self._claims = asyncio.Lock()
        self._began = clock.monotonic()
        self._suspect: tuple[RunId, float] | None = None
        """The run of a dead process that was started last, and when, in monotonic seconds."""
        self._wake_event = asyncio.Event()
        self._stopping = asyncio.Event()

    @property
    def executes_runs(self) -> bool:
        """Whether this process executes runs at all."""
        return self._concurrency > 0

    @property
    def starts_runs(self) -> bool:
        """Whether claimed runs are started now: between the start and the end of `run`."""
        return self._start is not None

    @property
    def is_stopping(self) -> bool:
        """Whether no more runs are started."""
        return self._stopping.is_set()

    @property
    def active_count(self) -> int:
        """The number of runs that this process executes."""
        return len(self._active)

    def wake(self) -> None:
        """Look for queued runs now."""
        self._wake_event.set()

    def on_event(self, record: EventRecord) -> None:
        """Look for queued runs when an event announces one."""
        envelope = record.envelope
        if envelope is None or not isinstance(envelope.payload, LifecycleUpdated):
            return
        if envelope.payload.status == "queued":
            self._queued.add(record.run_id)
            # One that was reserved is claimed at once or, if its lane is busy, waits for its end.
            if record.run_id not in self._starting:
                self._wake_event.set()
        elif envelope.payload.status in ENDED:
            self._queued.discard(record.run_id)
            if record.run_id in self._starting:
                self._ended.add(record.run_id)

    @contextmanager
    def reserve(self, run_id: RunId) -> Generator["_Slot | None"]:
        """Keep a place free for a new run while a block stores it; see `Dispatcher.reserve`."""
        if not self._has_room():
            yield None
            return
        self._starting.add(run_id)
        slot = _Slot(self, run_id)
        try:
            yield slot
        finally:
            if not slot.is_started:
                self._starting.discard(run_id)

    def _has_room(self) -> bool:
        """Return True if a new run can be claimed although others are queued."""
        most = min(self._concurrency, MAX_CLAIMS) if self._is_shared else self._concurrency
        is_full = self._busy_count + len(self._queued) >= most
        is_known = self._is_informed or self._database.messages is not None  # told often
        return self.starts_runs and is_known and not is_full and self.may_start()

    @property
    def _busy_count(self) -> int:
        """The number of taken places. A run that has ended leaves its place at once."""
        return len(self._starting - self._ended)

    def claim(self, run_id: RunId, new: tuple[Task, int] | None = None) -> Write[Run | None]:
        """Claim a queued run for this process; see `claim_run`."""
        return (
            yield from claim_run(
                self._stores,
                run_id,
                self._leases.owner,
                lease_until=self._leases.expiry(),
                now=rfc3339(self._clock.now()),
                host=self._leases.host,
                new=new,
            )
        )

    async def start(self, claimed: ClaimedTask) -> bool:
        """Execute a claimed run for which a place was reserved. False if it is handed over."""
        if self._start is None:
            await self._recovery.hand_over(claimed.run)
            return False
        self._start(claimed.run, claimed)
        return True

    def cancel(self, run_id: RunId, reason: RunExit) -> bool:
        """Cancel a run of this process. False when this process does not execute it."""
        return self._active.cancel(run_id, reason)

    def close(self) -> None:
        """Start no more runs. `run` returns when the active ones have ended."""
        self._stopping.set()

    def stop(self) -> None:
        """Start no more runs and hand over the active ones. `run` returns when they are stored."""
        self.close()
        for active in self._active:
            active.cancel(RunHandedOver("the process stops"))

    async def run(self, coordinator: AgentCoordinator, *, is_alone: bool = True) -> None:
        """Recover the runs of dead processes and dispatch, until `close` or `stop`.

        `is_alone`: no other gateway or worker is possible, so the owners of all runs are dead,
        except terminals.
        """
        if is_alone:
            await self._recovery.recover_after_restart()
        with self._database.watch(self._on_foreign_commit):
            await self._dispatch(coordinator)

    def _on_foreign_commit(self) -> None:
        self._is_informed = False
        self._wake_event.set()

    async def _dispatch(self, coordinator: AgentCoordinator) -> None:
        repeat = self._supervisor.repeat
        async with (
            background_task(self._leases.run(self._active, self._supervisor)),
            background_task(repeat("recovery", self._recover, interval=RECOVERY_INTERVAL_SECONDS)),
            background_task(repeat("upkeep", self._end_expired, interval=UPKEEP_INTERVAL_SECONDS)),
            asyncio.TaskGroup() as runs,
        ):
            start = partial(self._start_ready, runs, coordinator)
            dispatch = repeat(
                "dispatcher", start, interval=self._poll_seconds, wake=self._wake_event
            )
            if self._concurrency:
                self._start = partial(self._start_run, runs, coordinator)
            async with background_task(dispatch):
                await self._stopping.wait()
            self._start = None

    async def _start_ready(self, runs: asyncio.TaskGroup, coordinator: AgentCoordinator) -> None:
        is_full = self._busy_count >= self._concurrency
        if is_full or not self.may_start():
            return
        before, is_informed = {*self._queued}, self._is_informed
        self._is_informed = not self._is_shared
        try:
            look = partial(self._look, is_informed=is_informed)
            ready, known = await self._database.read(look, is_short=is_informed)
        except StoreUnavailable:
            self._is_informed = False
            raise
        if known is not None:
            queued, self._is_shared = known
            self._queued = queued | (self._queued - before)
            self._is_informed = self._is_informed and not self._is_shared
        if not ready:
            return
        if not self.is_stopping:  # since the read began
            # to its end, because a claim cannot be undone
            await wait_for_completion(self._claim_ready(runs, coordinator))

    async def _claim_ready(self, runs: asyncio.TaskGroup, coordinator: AgentCoordinator) -> None:
        async with self._claims:
            for run in await self._database.write(self._claim_rows):
                if run.crashes:
                    self._suspect = run.id, self._clock.monotonic()
                self._start_run(runs, coordinator, run)
                self._wake_event.set()  # there may be more

    def _start_run(
        self,
        runs: asyncio.TaskGroup,
        coordinator: AgentCoordinator,
        run: Run,
        claimed: ClaimedTask | None = None,
    ) -> None:
        self._starting.add(run.id)
        self._queued.discard(run.id)
        runs.create_task(self._execute(run, coordinator, claimed))

    def _look(self, *, is_informed: bool) -> Read[tuple[bool, tuple[set[RunId], bool] | None]]:
        """Return whether a run can start, and which are queued and `_is_shared` unless known."""
        known = None
        if not is_informed:
            is_shared = yield from self._has_others()
            limit = self._concurrency if is_shared else _MAX_KNOWN
            known = (yield from self._stores.runs.list_queued(limit)), is_shared
        return bool((yield from self._ready(1))), known

    def _has_others(self) -> Read[bool]:
        """Return whether another process serves the database."""
        if self._database.messages is None:
            return False
        listed = yield from self._stores.processes.list_all()
        return any(each.owner != self._leases.owner for each in listed)

    def _claim_rows(self) -> Write[list[Run]]:
        """Claim some of the runs that can start, one of each person in turn.

        Meanwhile no other process claims any.
        """
        claimed: list[Run] = []
        free = min(self._concurrency - self._busy_count, MAX_CLAIMS)
        while len(claimed) < free:
            before = len(claimed)
            for run in (yield from self._ready(free - before, crashed=not claimed)):
                found = yield from self.claim(run.id)
                if found is not None:
                    claimed.append(found)
            if len(claimed) == before:
                break
        return claimed

    def _ready(self, limit: int, *, crashed: bool = True) -> Read[list[Run]]:
        """Return the runs to start, one of each person.

        At most one of them is one whose process died, with `crashed`, and only if none is watched.
        """
        stores, owner = self._stores.runs, self._leases.owner
        now, host = rfc3339(self._clock.now()), self._leases.host.name
        ready = yield from stores.list_next(owner, now, limit, host=host)
        # a run that has paused and was answered may still be ending here
        if not self._starting.isdisjoint(run.id for run in ready):
            most = limit + len(self._starting)
            ready = yield from stores.list_ready(owner, now, most, host=host)
        if crashed and not (yield from self._is_watched()):
            is_steady = self._clock.monotonic() - self._began >= STEADY_SECONDS
            suspect = yield from stores.get_ready_crashed(
                owner, now, host=host, except_crashes=0 if is_steady else MAX_CRASHES - 1
            )
            ready = ready if suspect is None else [suspect, *ready]
        return [run for run in ready if run.id not in self._starting][:limit]

    def _is_watched(self) -> Read[bool]:
        """Return True while the suspect is executed and has not made progress."""
        if self._suspect is None:
            return False
        run_id, started = self._suspect
        waited = self._clock.monotonic() - started
        if run_id not in self._starting or waited > MAX_ALONE_SECONDS:
            return False
        run = yield from self._stores.runs.get(run_id)
        return run is not None and run.crashes > 0

    async def _execute(
        self, run: Run, coordinator: AgentCoordinator, claimed: ClaimedTask | None
    ) -> None:
        """Execute one claimed run. Its failure does not affect other runs."""
        try:
            if self.is_stopping:
                await self._recovery.hand_over(run)
            else:
                await coordinator.execute_task(self._active.add(run, claimed))
        except StoreUnavailable as error:  # it is requeued by the next recovery
            logger.error("run abandoned", extra={"run_id": run.id, "reason": str(error)})  # noqa: TRY400 - the message explains it
        except Exception:
            logger.exception("run failed unexpectedly", extra={"run_id": run.id})
            with suppress(StoreUnavailable):  # as above
                await self._recovery.retry_crashed(run)
        finally:
            self._active.remove(run.id)
            self._starting.discard(run.id)
            has_ended = run.id in self._ended
            self._ended.discard(run.id)
            if self._queued or not (has_ended and self._is_informed):
                self._wake_event.set()

    async def _recover(self) -> None:
        if await self._recovery.recover_expired_leases(self._starting):
            self._on_foreign_commit()

    async def _end_expired(self) -> None:
        await self._recovery.expire_questions()
        await self._recovery.end_waits()
        async with self._claims:  # a run is claimed before it is in the set
            if await self._recovery.requeue_orphaned(self._leases.owner, self._starting):
                self._on_foreign_commit()


class _Slot:
    """A place for a run; see `RunSlot`."""

    def __init__(self, dispatcher: RunDispatcher, run_id: RunId) -> None:
        self._dispatcher = dispatcher
        self._run_id = run_id
        self.is_started = False

    def claim(self, task: Task, events: int) -> Write[Run | None]:
        return self._dispatcher.claim(self._run_id, (task, events))

    async def start(self, claimed: ClaimedTask) -> None:
        self.is_started = await self._dispatcher.start(claimed)
