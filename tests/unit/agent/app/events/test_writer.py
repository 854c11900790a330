"""How the events of a run are stored and delivered, and the queue of a slow listener."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TypeVar

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.writer import (
    MAX_QUEUED_ENVELOPES,
    QueuedListener,
    SerializingEventListener,
)
from internal.agent.domain.events.control import Connected
from internal.agent.domain.events.envelope import (
    EventRecord,
    RunIds,
    WorkflowEventEnvelope,
    wrap_event,
)
from internal.agent.domain.events.types import (
    LifecycleUpdated,
    NodeFailed,
    NodeStarted,
    OutputDelta,
)
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from tests.support.database_wrapper import DatabaseWrapper
from tests.support.store_records import RUNNING, a_run, add_running_run

T = TypeVar("T")

IDS = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-1"))


class SlowListener:
    """A listener that raises at first and then blocks until `go` is set."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.received = 0

    async def on_event(self, _envelope: WorkflowEventEnvelope, /) -> None:
        self.received += 1
        if self.received == 1:
            raise ValueError("the first event fails")
        await self.go.wait()


async def test_a_slow_listener_drops_events_when_its_queue_is_full(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slow = SlowListener()
    queued = QueuedListener(slow)
    envelope = wrap_event(IDS, LifecycleUpdated(status="running", phase="x"), "2026", 1)
    for _ in range(MAX_QUEUED_ENVELOPES + 5):
        await queued.on_event(envelope)
    assert sum("too slow" in record.message for record in caplog.records) == 5
    listening = asyncio.create_task(queued.listen())
    slow.go.set()
    await queued.drained()
    assert slow.received == MAX_QUEUED_ENVELOPES
    assert any("listener failed" in record.message for record in caplog.records)
    listening.cancel()


class HeldDatabase(DatabaseWrapper):
    """A database whose writes wait while `go` is not set. `begun` counts them."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.go = asyncio.Event()
        self.go.set()
        self.begun = 0

    async def write(self, work: Callable[[], Write[T]], /) -> T:
        self.begun += 1
        await self.go.wait()
        return await super().write(work)


class Shown:
    """The events that a subscriber has received."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._changed = asyncio.Condition()

    async def follow(self, broadcaster: EventBroadcaster, connected: asyncio.Event) -> None:
        async with aclosing(broadcaster.watch(frozenset({IDS.session_id}), None)) as batches:
            async for batch in batches:
                for item in batch:
                    if isinstance(item, Connected):
                        connected.set()
                    elif isinstance(item, EventRecord):
                        self.names.append(item.event.removeprefix("workflow."))
                async with self._changed:
                    self._changed.notify_all()

    async def count(self, count: int) -> list[str]:
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: len(self.names) >= count)
        return self.names


@asynccontextmanager
async def written(
    database: Database, stores: Stores, broadcaster: EventBroadcaster
) -> AsyncGenerator[tuple[SerializingEventListener, HeldDatabase, Shown]]:
    run = await add_running_run(database, stores, a_run())
    held, shown, connected = HeldDatabase(database), Shown(), asyncio.Event()
    stream = SerializingEventListener(
        IDS, run.fence, held, stores=stores, broadcaster=broadcaster, clock=SystemClock()
    )
    async with (
        background_task(stream.deliver()),
        background_task(shown.follow(broadcaster, connected)),
    ):
        await connected.wait()
        await stream.commit(RUNNING)
        await shown.count(1)  # live from here on
        shown.names.clear()
        held.begun = 0
        yield stream, held, shown


def delta(k: int) -> OutputDelta:
    return OutputDelta(node_id="iter:1:say", k=k, n=1, text="word ")


STARTED = NodeStarted(node_id="iter:1", kind="iteration", iteration=1)
FAILED = NodeFailed(node_id="iter:1:say", phase="think", error="broken", recoverable=False)


async def test_a_deferred_entry_is_stored_with_the_next_one(
    database: Database, stores: Stores, broadcaster: EventBroadcaster
) -> None:
    async with written(database, stores, broadcaster) as (stream, held, shown):
        await stream.defer(STARTED)
        await stream.commit(RUNNING)
        assert await shown.count(2) == ["node.started", "lifecycle.updated"]
        assert held.begun == 1


async def test_a_deferred_entry_that_nothing_follows_is_stored_by_itself(
    database: Database, stores: Stores, broadcaster: EventBroadcaster
) -> None:
    async with written(database, stores, broadcaster) as (stream, _, shown):
        await stream.defer(STARTED)
        assert await shown.count(1) == ["node.started"]


async def test_a_delta_is_shown_before_announcements_are_stored(
    database: Database, stores: Stores, broadcaster: EventBroadcaster
) -> None:
    async with written(database, stores, broadcaster) as (stream, held, shown):
        held.go.clear()
        await stream.emit(STARTED)
        await stream.emit(delta(1))
        assert await shown.count(1) == ["node.output.delta"]
        held.go.set()
        await stream.commit()
        assert await shown.count(2) == ["node.output.delta", "node.started"]


async def test_a_delta_does_not_overtake_the_end_of_what_it_belongs_to(
    database: Database, stores: Stores, broadcaster: EventBroadcaster
) -> None:
    async with written(database, stores, broadcaster) as (stream, held, shown):
        held.go.clear()
        await stream.emit(FAILED)
        await stream.emit(delta(1))
        assert stream.offer(delta(2))
        held.go.set()
        await stream.commit()
        await stream.emit(delta(3))
        assert await shown.count(4) == ["node.failed", *["node.output.delta"] * 3]
