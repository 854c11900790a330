"""The queue of a slow listener."""

import asyncio

import pytest

from internal.agent.app.events.writer import MAX_QUEUED_ENVELOPES, QueuedListener
from internal.agent.domain.events.envelope import RunIds, WorkflowEventEnvelope, wrap_event
from internal.agent.domain.events.types import LifecycleUpdated
from internal.agent.domain.ids import RunId, SessionId, TaskId

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
