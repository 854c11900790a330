"""The one way of an event: numbered, stored with the newest checkpoint, only then delivered."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from internal.agent.app.events.broadcaster import Delivery, EventBroadcaster
from internal.agent.app.events.records import Stamped, record
from internal.agent.domain.errors import LeaseLost, StoreError
from internal.agent.domain.events.envelope import RunIds, rfc3339, wrap_event
from internal.agent.domain.events.event import Event
from internal.agent.domain.react.turn import Turn
from internal.agent.ports.runtime import Clock, EventListener
from internal.agent.store.checkpoints import CheckpointEncoder, merge_deltas
from internal.agent.store.database import Database, Write
from internal.agent.store.runs import CheckpointDelta
from internal.agent.store.stores import Stores

logger = logging.getLogger(__name__)

MOST_WAITING = 256
MOST_TOGETHER = 64

Also = Callable[[], Write[list[Delivery]]]
"""Work that belongs into an entry's transaction; it returns what else is to be shown."""


class Emit(Protocol):
    """How the stages, the engine and the tool runner say what happened."""

    async def __call__(
        self, *events: Event, turn: Turn | None = None, also: Also | None = None
    ) -> None:
        """Put events, and what the Turn learned with them, into the run's queue."""
        ...


@dataclass(slots=True)
class _Entry:
    """What one call put in: never parted between transactions."""

    events: Sequence[Event]
    point: CheckpointDelta | None
    also: Also | None
    moment: datetime
    stored: asyncio.Future[None] | None = field(default=None, repr=False)


class SerializingEventListener:
    """The event stream of one run: one queue, one delivery task.

    A stored checkpoint means that every event before it is stored. What is shown is stored.
    """

    def __init__(
        self,
        ids: RunIds,
        fence: int,
        database: Database,
        stores: Stores,
        broadcaster: EventBroadcaster,
        clock: Clock,
    ) -> None:
        self.ids = ids
        self._fence = fence
        self._database = database
        self._stores = stores
        self._broadcaster = broadcaster
        self._clock = clock
        self._listeners: list[EventListener] = []
        self._checkpoints = CheckpointEncoder()
        self._queue: asyncio.Queue[_Entry] = asyncio.Queue(MOST_WAITING)
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def add(self, listener: EventListener) -> None:
        """Deliver to this listener as well. It must be quick, or have a queue of its own."""
        self._listeners.append(listener)

    def goes_on(self, kept: int) -> None:
        """Say how many rows of the turn log a resumed run has already."""
        self._checkpoints = CheckpointEncoder(kept)

    async def emit(
        self, *events: Event, turn: Turn | None = None, also: Also | None = None
    ) -> None:
        """Put one entry into the queue; waits only while it is full.

        Raises:
            Fenced, StoreError: the stream has failed; nothing more is stored.
        """
        await self._put(_Entry(events, self._point(turn), also, self._clock.now()))

    async def commit(
        self, *events: Event, turn: Turn | None = None, also: Also | None = None
    ) -> None:
        """Put one entry into the queue and return when it and all before it are stored and shown.

        Raises:
            Fenced, StoreError: the entry is not stored.
        """
        stored = asyncio.get_running_loop().create_future()
        await self._put(_Entry(events, self._point(turn), also, self._clock.now(), stored))
        await asyncio.wait((stored, self._failed), return_when=asyncio.FIRST_COMPLETED)
        if not stored.done():
            self._failed.result()

    def offer(self, event: Event) -> bool:
        """Put an ephemeral event into the queue if there is room; never waits."""
        if self._failed.done() or self._queue.full():
            return False
        self._queue.put_nowait(_Entry((event,), None, None, self._clock.now()))
        return True

    async def deliver(self) -> None:
        """Store and deliver entries until cancelled. This is the run's one delivery task.

        When the store fails, the error is kept for `emit` and `commit` to raise, and what comes
        after it is thrown away.
        """
        while True:
            batch = [await self._queue.get()]
            while len(batch) < MOST_TOGETHER and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            if self._failed.done():
                continue
            try:
                await self._store(batch)
            except (LeaseLost, StoreError) as error:
                self._failed.set_exception(error)
                self._failed.exception()  # seen: perhaps nobody emits any more

    async def _put(self, entry: _Entry) -> None:
        if self._failed.done():
            self._failed.result()
        await self._queue.put(entry)

    def _point(self, turn: Turn | None) -> CheckpointDelta | None:
        return None if turn is None else self._checkpoints.encode(turn)

    async def _store(self, batch: list[_Entry]) -> None:
        if any(entry.point or entry.also or _durable(entry) for entry in batch):
            stored, others = await self._database.write(partial(self._write, batch))
        else:
            stored, others = [], []
        numbered = iter(stored)
        deliveries = [
            next(numbered) if event.durable else self._ephemeral(event, entry.moment)
            for entry in batch
            for event in entry.events
        ]
        self._broadcaster.publish([*others, *deliveries])
        for delivery in deliveries if self._listeners else ():
            await self._deliver(delivery)
        for entry in batch:
            if entry.stored is not None and not entry.stored.done():
                entry.stored.set_result(None)

    def _write(self, batch: list[_Entry]) -> Write[tuple[list[Delivery], list[Delivery]]]:
        durable = [
            Stamped(event, rfc3339(entry.moment)) for entry in batch for event in _durable(entry)
        ]
        first = yield from self._stores.events.reserve_seqs(
            self.ids.run_id, self._fence, len(durable)
        )
        # before the rest: the end of a run forgets its checkpoint
        if point := merge_deltas([entry.point for entry in batch if entry.point is not None]):
            yield from self._stores.runs.save_checkpoint(self.ids.run_id, point)
        others: list[Delivery] = []
        for entry in batch:
            if entry.also is not None:
                others += yield from entry.also()
        return (yield from record(self._stores.events, self.ids, first, durable)), others

    def _ephemeral(self, event: Event, moment: datetime) -> Delivery:
        return Delivery(wrap_event(self.ids, event, rfc3339(moment), None))

    async def _deliver(self, delivery: Delivery) -> None:
        for listener in self._listeners:
            try:
                await listener.on_event(delivery.envelope)
            except Exception:  # a failing listener costs nobody else anything
                logger.exception(
                    "listener failed",
                    extra={"run_id": self.ids.run_id, "event": delivery.envelope.event},
                )


def _durable(entry: _Entry) -> list[Event]:
    return [event for event in entry.events if event.durable]
