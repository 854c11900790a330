"""The queue of a slow listener, and deltas that do not wait for commits."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TypeVar

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.writer import (
    MAX_QUEUED_ENVELOPES,
    QueuedListener,
    SerializingEventListener,
)
from internal.agent.domain.events.control import ReplayDone
from internal.agent.domain.events.envelope import (
    EventRecord,
    RunIds,
    WorkflowEventEnvelope,
    wrap_event,
)
from internal.agent.domain.events.types import LifecycleUpdated, NodeStarted, OutputDelta
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
    async with queued.running():
        for _ in range(MAX_QUEUED_ENVELOPES + 5):
            await queued.on_event(envelope)
        assert sum("too slow" in record.message for record in caplog.records) == 5
        slow.go.set()
    assert slow.received == MAX_QUEUED_ENVELOPES
    assert any("listener failed" in record.message for record in caplog.records)


@pytest.mark.parametrize("is_resumed", [False, True])
async def test_text_is_shown_before_the_events_that_are_not_stored_yet(
    database: Database, stores: Stores, broadcaster: EventBroadcaster, is_resumed: bool
) -> None:
    run = await add_running_run(database, stores, a_run())
    stream = SerializingEventListener(
        RunIds.of(run),
        run.fence,
        database,
        stores=stores,
        broadcaster=broadcaster,
        clock=SystemClock(),
    )
    if is_resumed:
        stream.resume_from(0)
    events: list[str] = []
    async with aclosing(broadcaster.watch(frozenset({run.session_id}), None)) as batches:
        async for batch in batches:
            if any(isinstance(item, ReplayDone) for item in batch):
                break
        await stream.emit(NodeStarted(node_id="iter:1", kind="iteration", iteration=1))
        await stream.emit(OutputDelta(node_id="iter:1:say", k=1, n=1, text="one"))
        assert stream.offer(OutputDelta(node_id="iter:1:say", k=2, n=1, text="two"))
        async with background_task(stream.deliver()):
            await stream.commit()
            async for batch in batches:
                events += [item.event for item in batch if isinstance(item, EventRecord)]
                if len(events) == 3:
                    break
    deltas = ["workflow.node.output.delta"] * 2
    started = ["workflow.node.started"]
    assert events == (started + deltas if is_resumed else deltas + started)


class CountedDatabase(DatabaseWrapper):
    """A database that counts the writes."""

    writes = 0

    async def write(self, work: Callable[[], Write[T]], /) -> T:
        self.writes += 1
        return await super().write(work)


@pytest.mark.parametrize("is_followed", [True, False])
async def test_a_deferred_entry_is_stored_with_the_next_one_or_after_a_moment(
    database: Database, stores: Stores, broadcaster: EventBroadcaster, is_followed: bool
) -> None:
    run, counted = await add_running_run(database, stores, a_run()), CountedDatabase(database)
    stream = SerializingEventListener(
        RunIds.of(run),
        run.fence,
        counted,
        stores=stores,
        broadcaster=broadcaster,
        clock=SystemClock(),
    )
    shown: asyncio.Queue[str] = asyncio.Queue()
    with broadcaster.listen(lambda record: shown.put_nowait(record.event)):
        async with background_task(stream.deliver()), asyncio.timeout(30):
            await stream.defer(NodeStarted(node_id="iter:1", kind="iteration", iteration=1))
            if is_followed:
                await stream.commit(RUNNING)
            events = [await shown.get() for _ in range(1 + is_followed)]
    assert events == ["workflow.node.started", "workflow.lifecycle.updated"][: len(events)]
    assert counted.writes == 1
