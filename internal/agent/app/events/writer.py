"""The event writer of a run: numbers and stores events with the checkpoint, then delivers them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.domain.errors import LeaseLost, StoreError, StoreUnavailable
from internal.agent.domain.events.envelope import (
    EventRecord,
    RunIds,
    WorkflowEventEnvelope,
    rfc3339,
    wrap_event,
)
from internal.agent.domain.events.types import (
    ContextCompression,
    ContextSnapshot,
    Event,
    InputReceived,
    LifecycleUpdated,
    NodeCompleted,
    NodeStarted,
    ToolFiltering,
)
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import StopRequest
from internal.agent.ports.runtime import Clock, EventListener
from internal.agent.store.checkpoints import CheckpointDelta, CheckpointEncoder, merge_deltas
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.stores import Stores

logger = logging.getLogger(__name__)

MAX_QUEUED_ENTRIES = 256
MAX_BATCH_ENTRIES = 64
MAX_QUEUED_ENVELOPES = 1024
MAX_DEFER_SECONDS = 0.02
"""How long an entry waits at most for the next one, to be stored with it."""

_ANNOUNCEMENTS = (
    InputReceived,
    LifecycleUpdated,
    ToolFiltering,
    ContextSnapshot,
    ContextCompression,
    NodeStarted,
    NodeCompleted,
)
"""Events that say nothing which has to be shown before the text that follows."""

ExtraWork = Callable[[], Write[list[EventRecord]]]
"""Statements for the same transaction. Returns events of other runs that are delivered with it."""


def join_work(*works: ExtraWork | None) -> ExtraWork | None:
    """Return statements for one transaction as one piece of work, None if there are none."""
    present = [work for work in works if work is not None]

    def run() -> Write[list[EventRecord]]:
        records: list[EventRecord] = []
        for work in present:
            records += yield from work()
        return records

    return run if present else None


LastEvent = Callable[[Event], Read[Event]]
"""Returns the last event of an entry as it is stored, read after the extra work."""


class Emit(Protocol):
    """The signature of `SerializingEventListener.emit`."""

    async def __call__(
        self, *events: Event, turn: Turn | None = None, also: ExtraWork | None = None
    ) -> None:
        """Queue events together with the changes of the Turn that they report."""
        ...


@dataclass(slots=True)
class _Entry:
    """The arguments of one call; they are stored in one transaction."""

    events: Sequence[Event]
    checkpoint: CheckpointDelta | None
    also: ExtraWork | None
    time: datetime
    unless_stopped: bool = False
    drops_checkpoint: bool = False
    holds_back: bool = False
    """Whether ephemeral events must not overtake it."""
    settle: LastEvent | None = None
    ended: Turn | None = None
    """A Turn that changes no more: its checkpoint is made if this is stored before the end."""
    stored: asyncio.Future[None] | None = field(default=None, repr=False)


class SerializingEventListener:
    """The event stream of one run: one queue and one delivery task.

    Every event before a stored checkpoint is stored, and only stored events are delivered.
    Ephemeral events overtake announcements that are not stored yet, so that the first text of a
    reply does not wait for a commit; except in a run that continues a former attempt, whose nodes
    start again. They overtake no other event: what came before a text is delivered before it.

    `used_seconds` is the running time of earlier attempts. With every entry the running time so far
    is stored.
    """

    def __init__(
        self,
        ids: RunIds,
        fence: int,
        database: Database,
        *,
        stores: Stores,
        broadcaster: EventBroadcaster,
        clock: Clock,
        used_seconds: float = 0.0,
    ) -> None:
        self.ids = ids
        self._fence = fence
        self._database = database
        self._stores = stores
        self._broadcaster = broadcaster
        self._clock = clock
        self._used_seconds = used_seconds
        self._started_at = clock.monotonic()
        self._listeners: list[EventListener] = []
        self._checkpoints = CheckpointEncoder()
        self._queue: asyncio.Queue[_Entry] = asyncio.Queue()
        self._room = asyncio.Event()
        self._deferred: list[_Entry] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_resumed = fence > 1
        self._waiting = 0
        """How many entries hold ephemeral events back."""
        self._failure: LeaseLost | StoreError | None = None
        """Why nothing is stored any more."""

    @property
    def used_seconds(self) -> float:
        """The running time of the run so far."""
        return self._used_seconds + self._clock.monotonic() - self._started_at

    def add(self, listener: EventListener) -> None:
        """Deliver durable events to this listener too.

        It must return quickly; see `QueuedListener`.
        """
        self._listeners.append(listener)

    def resume_from(self, stored_rows: int) -> None:
        """Continue a turn log that has this many rows already."""
        self._checkpoints = CheckpointEncoder(stored_rows)
        self._is_resumed = True

    @property
    def has_checkpoint(self) -> bool:
        """Whether a checkpoint of the run is stored, or will be before the next emitted event."""
        return self._checkpoints.has_rows

    async def emit(
        self, *events: Event, turn: Turn | None = None, also: ExtraWork | None = None
    ) -> None:
        """Queue one entry; waits only while the queue is full. Ephemeral events are delivered.

        Raises:
            LeaseLost, StoreError: an earlier entry could not be stored; nothing more is stored.
        """
        if turn is None and also is None and self._deliver_now(events):
            return
        await self._put(_Entry(events, self._checkpoint(turn), also, self._clock.now()))

    async def defer(
        self, *events: Event, turn: Turn | None = None, also: ExtraWork | None = None
    ) -> None:
        """Queue one entry that is stored with the next one, or `MAX_DEFER_SECONDS` later.

        Raises:
            LeaseLost, StoreError: an earlier entry could not be stored; nothing more is stored.
        """
        if self._failure is not None:
            raise self._failure
        entry = _Entry(events, None, also, self._clock.now())
        if turn is not None and turn.outcome is not None:
            entry.ended = turn
        else:
            entry.checkpoint = self._checkpoint(turn)
        self._add(entry)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(MAX_DEFER_SECONDS, self._flush)

    async def commit(
        self,
        *events: Event,
        turn: Turn | None = None,
        also: ExtraWork | None = None,
        settle: LastEvent | None = None,
        unless_stopped: bool = False,
        drops_checkpoint: bool = False,
    ) -> None:
        """Queue one entry and wait until it and all earlier ones are stored and delivered.

        With `settle` the last event is stored as that returns it after the extra work. With
        `drops_checkpoint` the run has none afterwards, so that none is stored with it.

        Raises:
            LeaseLost, StoreError: the entry is not stored.
            RunStopped: the run was asked to stop, which `unless_stopped` forbids. Only the
                checkpoint is stored.
        """
        for deferred in self._deferred if drops_checkpoint else ():
            deferred.ended = None
        stored = asyncio.get_running_loop().create_future()
        entry = _Entry(
            events,
            self._checkpoint(turn),
            also,
            self._clock.now(),
            unless_stopped,
            drops_checkpoint,
            settle=settle,
            stored=stored,
        )
        await self._put(entry)
        await stored

    def offer(self, event: Event) -> bool:
        """Deliver an ephemeral event without waiting; returns False if it must be dropped."""
        if self._failure is not None:
            return False
        if self._deliver_now((event,)):
            return True
        if self._queue.qsize() >= MAX_QUEUED_ENTRIES:
            return False
        self._add(_Entry((event,), None, None, self._clock.now()))
        self._flush()
        return True

    async def deliver(self) -> None:
        """Store and deliver entries until cancelled. Run it in exactly one task per run.

        When an entry cannot be stored, for whatever reason, `emit` and `commit` raise an error from
        then on and later entries are discarded.
        """
        while True:
            batch = [await self._queue.get()]
            while len(batch) < MAX_BATCH_ENTRIES and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            self._room.set()
            try:
                if self._failure is None:
                    await self._store(batch)
            except (LeaseLost, StoreUnavailable) as error:
                self._failure = error
            except Exception as error:  # the run must not wait for ever
                logger.exception("events cannot be stored", extra={"run_id": self.ids.run_id})
                self._failure = StoreError(f"The events of the run cannot be stored: {error}")
            finally:
                if self._failure is not None:
                    _reject(batch, self._failure)
                self._waiting -= sum(entry.holds_back for entry in batch)

    def _deliver_now(self, events: Sequence[Event]) -> bool:
        """Deliver ephemeral events; return False if they must be queued, or are not ephemeral."""
        if self._failure is not None or any(event.durable for event in events):
            return False
        if self._waiting:
            return False
        now = self._clock.now()
        self._broadcaster.publish([self._ephemeral(event, now) for event in events])
        return True

    async def _put(self, entry: _Entry) -> None:
        if self._failure is not None:
            raise self._failure
        self._add(entry)
        self._flush()
        if self._queue.qsize() > MAX_QUEUED_ENTRIES:
            self._room.clear()
            await self._room.wait()

    def _add(self, entry: _Entry) -> None:
        others = any(not isinstance(event, _ANNOUNCEMENTS) for event in entry.events)
        entry.holds_back = others or self._is_resumed
        self._waiting += entry.holds_back
        self._deferred.append(entry)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for entry in self._deferred:
            if entry.ended is not None:
                entry.checkpoint = self._checkpoint(entry.ended)
            self._queue.put_nowait(entry)
        self._deferred.clear()

    def _checkpoint(self, turn: Turn | None) -> CheckpointDelta | None:
        return None if turn is None else self._checkpoints.encode(turn)

    async def _store(self, batch: list[_Entry]) -> None:
        stored: list[EventRecord] = []
        others: list[EventRecord] = []
        stop: StopRequest | None = None
        if any(entry.checkpoint or entry.also or _durable(entry) for entry in batch):
            stored, others, stop = await self._database.write(partial(self._write, batch))
        durable = iter(stored)
        records = [
            next(durable) if event.durable else self._ephemeral(event, entry.time)
            for entry in _accepted(batch, stop)
            for event in entry.events
        ]
        envelopes = [each.envelope for each in records if each.position and self._listeners]
        self._broadcaster.publish([*others, *records])
        for envelope in filter(None, envelopes):
            await self._notify(envelope)
        for entry in batch:
            if entry.stored is None or entry.stored.done():
                continue
            if stop is not None and entry.unless_stopped:
                entry.stored.set_exception(stop.to_error())
            else:
                entry.stored.set_result(None)

    def _write(
        self, batch: list[_Entry]
    ) -> Write[tuple[list[EventRecord], list[EventRecord], StopRequest | None]]:
        log = self._stores.events
        reserve = partial(log.reserve_seqs, self.ids.run_id, self._fence)
        accepted, durable = batch, _timed(batch)
        first_seq, stop = yield from reserve(len(durable), self.used_seconds)
        if stop is not None and any(entry.unless_stopped for entry in batch):
            accepted = [entry for entry in batch if not entry.unless_stopped]
            durable, reserved = _timed(accepted), len(durable)
            yield from reserve(len(durable) - reserved)
        else:
            stop = None
        point = merge_deltas([entry.checkpoint for entry in batch if entry.checkpoint is not None])
        # before the extra work: the end of a run deletes its checkpoint
        if point is not None and not any(entry.drops_checkpoint for entry in accepted):
            yield from self._stores.runs.save_checkpoint(self.ids.run_id, point)
        others: list[EventRecord] = []
        for entry in accepted:
            if entry.also is not None:
                others += yield from entry.also()
            if entry.settle is not None:
                *before, last = entry.events
                entry.events = (*before, (yield from entry.settle(last)))
        durable = _timed(accepted)
        return (yield from log.append(self.ids, first_seq, durable)), others, stop

    def _ephemeral(self, event: Event, time: datetime) -> EventRecord:
        return EventRecord.ephemeral(wrap_event(self.ids, event, rfc3339(time), None))

    async def _notify(self, envelope: WorkflowEventEnvelope) -> None:
        for listener in self._listeners:
            try:
                await listener.on_event(envelope)
            except Exception:  # a failing listener must not affect the run or other listeners
                logger.exception(
                    "listener failed", extra={"run_id": self.ids.run_id, "event": envelope.event}
                )


class QueuedListener:
    """Gives a slow listener a bounded queue of its own, so that it never delays the run.

    Only events of the types `kinds` are passed on; all events if there are none. An event that
    finds the queue full is dropped for this listener and logged.
    """

    def __init__(self, listener: EventListener, *kinds: type[Event]) -> None:
        self._listener = listener
        self._kinds = kinds or (Event,)
        self._queue: asyncio.Queue[WorkflowEventEnvelope] = asyncio.Queue(MAX_QUEUED_ENVELOPES)
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Pass envelopes on while the block runs, and then the remaining ones."""
        try:
            yield
            await self._queue.join()
        finally:
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task})

    async def on_event(self, envelope: WorkflowEventEnvelope) -> None:
        """Queue one envelope without waiting."""
        if not isinstance(envelope.payload, self._kinds):
            return
        if self._task is None:  # most runs have no event for most listeners
            self._task = asyncio.create_task(self._listen())
        try:
            self._queue.put_nowait(envelope)
        except asyncio.QueueFull:
            logger.warning(
                "listener too slow", extra={"run_id": envelope.run_id, "event": envelope.event}
            )

    async def _listen(self) -> None:
        while True:
            envelope = await self._queue.get()
            try:
                await self._listener.on_event(envelope)
            except Exception:  # a failing listener must not affect the run
                logger.exception(
                    "listener failed", extra={"run_id": envelope.run_id, "event": envelope.event}
                )
            finally:
                self._queue.task_done()


def _reject(batch: list[_Entry], failure: LeaseLost | StoreError) -> None:
    """Raise the failure in all callers that wait for entries."""
    for entry in batch:
        if entry.stored is not None and not entry.stored.done():
            entry.stored.set_exception(failure)


def _accepted(batch: list[_Entry], stop: StopRequest | None) -> list[_Entry]:
    return [entry for entry in batch if stop is None or not entry.unless_stopped]


def _timed(entries: list[_Entry]) -> list[tuple[Event, str]]:
    """Return the durable events of entries with their timestamps."""
    return [(event, rfc3339(entry.time)) for entry in entries for event in _durable(entry)]


def _durable(entry: _Entry) -> list[Event]:
    return [event for event in entry.events if event.durable]
