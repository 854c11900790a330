"""Sinks: the buffer writes new events to all ready ones, and the others catch up themselves."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import aclosing

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.live_buffer import (
    MAX_LIVE_EVENTS,
    LiveBuffer,
    LiveEncoder,
    SessionFilter,
)
from internal.agent.domain.events.control import ReplayDone
from internal.agent.domain.events.envelope import EventRecord, RunIds, wrap_event
from internal.agent.domain.events.types import OutputDelta
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import RUNNING, T0, a_run, add_running_run, append

ONE, TWO = SessionId("session-1"), SessionId("session-2")


class PositionEncoder:
    """Encodes the positions of events; events from `too_many` on do not fit one write."""

    def __init__(self, too_many: int = MAX_LIVE_EVENTS) -> None:
        self.too_many = too_many
        self.calls = 0

    def encode(self, events: Sequence[EventRecord]) -> bytes | None:
        self.calls += 1
        if len(events) >= self.too_many:
            return None
        return b" ".join(b"%d" % event.position for event in events)


class BrokenEncoder(PositionEncoder):
    def encode(self, events: Sequence[EventRecord]) -> bytes | None:
        raise ValueError("cannot encode")


class Sink:
    """A subscriber with a controllable ready state that records the written batches."""

    def __init__(self, encoder: LiveEncoder | None = None) -> None:
        self.encoder = encoder or PositionEncoder()
        self.is_ready = True
        self.batches: list[list[int]] = []
        self.written = asyncio.Event()
        self._leave: Callable[[], None] | None = None

    def start_live(self, leave: Callable[[], None]) -> "Sink":
        assert self.is_ready
        self._leave = leave
        return self

    def stop_live(self) -> None:
        self._leave = None

    def write(self, data: bytes) -> None:
        assert self._leave is not None
        self.batches.append([int(position) for position in data.split()])
        self.written.set()

    def block(self) -> None:
        """Be ready no more."""
        self.is_ready = False
        if self._leave is not None:
            self._leave()


class SlowSink(Sink):
    """A subscriber that does not take a write at once."""

    def write(self, data: bytes) -> None:
        super().write(data)
        self.block()


class BrokenSink(Sink):
    def write(self, data: bytes) -> None:
        raise ValueError("cannot write")


def event(position: int, session_id: SessionId = ONE) -> EventRecord:
    return EventRecord(session_id, RunId("run-1"), "workflow.node.started", b"x", position)


async def follow(
    buffer: LiveBuffer, sink: Sink, sessions: SessionFilter = None
) -> asyncio.Task[tuple[int, int]]:
    following = asyncio.create_task(buffer.follow(sink, sessions))
    await asyncio.sleep(0)  # one step: it follows
    return following


async def test_events_of_one_step_are_written_together_to_all_sinks() -> None:
    buffer, encoder = LiveBuffer(), PositionEncoder()
    sinks = [Sink(encoder), Sink(encoder)]
    buffer.append(event(1))
    tasks = [await follow(buffer, sink) for sink in sinks]
    for position in (2, 3, 4):
        buffer.append(event(position))
    assert buffer.has_unwritten
    for sink in sinks:
        await sink.written.wait()
    assert [sink.batches for sink in sinks] == [[[2, 3, 4]]] * 2
    assert encoder.calls == 1
    buffer.release()
    assert [await task for task in tasks] == [(4, 4)] * 2


def delta(k: int, n: int) -> EventRecord:
    words = OutputDelta(node_id="iter:1:say", k=k, n=n, text="word " * n)
    ids = RunIds(ONE, TaskId("task-1"), RunId("run-1"))
    return EventRecord.ephemeral(wrap_event(ids, words, T0, None))


async def test_the_first_words_of_a_reply_are_written_now_and_later_ones_paced() -> None:
    buffer, sink = LiveBuffer(), Sink()
    following = await follow(buffer, sink)
    buffer.append(event(1))
    await sink.written.wait()
    buffer.append(delta(2, 2))
    assert sink.batches == [[1], [0]]
    sink.written.clear()
    buffer.append(delta(3, 1))
    assert buffer.has_unwritten
    await sink.written.wait()
    assert sink.batches == [[1], [0], [0]]
    buffer.release()
    assert await following == (3, 1)


async def test_the_first_words_are_written_after_the_events_before_them() -> None:
    buffer, sink = LiveBuffer(), Sink()
    following = await follow(buffer, sink)
    buffer.append(event(1))
    buffer.append(delta(1, 1))
    assert sink.batches == [[1, 0]]
    buffer.release()
    assert await following == (2, 1)


async def test_a_sink_that_is_not_ready_continues_where_it_stopped() -> None:
    buffer, encoder = LiveBuffer(), PositionEncoder()
    slow, fast = Sink(encoder), Sink(encoder)
    tasks = [await follow(buffer, slow), await follow(buffer, fast)]
    buffer.append(event(5))
    await fast.written.wait()
    slow.block()
    fast.written.clear()
    buffer.append(event(6))
    await fast.written.wait()
    assert await tasks[0] == (1, 5)
    assert slow.batches == [[5]]
    buffer.append(event(7))
    buffer.release()
    assert await tasks[1] == (3, 7)
    assert fast.batches == [[5], [6], [7]]


async def test_a_sink_that_does_not_take_a_write_at_once_leaves_with_its_events() -> None:
    buffer, encoder = LiveBuffer(), PositionEncoder()
    slow, fast = SlowSink(encoder), Sink(encoder)
    tasks = [await follow(buffer, slow), await follow(buffer, fast)]
    buffer.append(event(5))
    assert await tasks[0] == (1, 5)
    buffer.append(event(6))
    buffer.release()
    assert await tasks[1] == (2, 6)
    assert (slow.batches, fast.batches) == ([[5]], [[5], [6]])


async def test_sinks_leave_before_events_that_do_not_fit_one_write() -> None:
    buffer, encoder = LiveBuffer(), PositionEncoder(too_many=2)
    sinks = [Sink(encoder), Sink(encoder)]
    tasks = [await follow(buffer, sink) for sink in sinks]
    buffer.append(event(1))
    await sinks[1].written.wait()
    buffer.append(event(2))
    buffer.append(event(3))
    assert [await task for task in tasks] == [(1, 1)] * 2
    assert [sink.batches for sink in sinks] == [[[1]]] * 2


async def test_events_that_cannot_be_encoded_do_not_affect_other_sinks() -> None:
    buffer, broken, sink = LiveBuffer(), Sink(BrokenEncoder()), Sink()
    tasks = [await follow(buffer, broken), await follow(buffer, sink)]
    buffer.append(event(1))
    assert await tasks[0] == (0, 0)
    buffer.release()
    assert await tasks[1] == (1, 1)
    assert sink.batches == [[1]]


async def test_a_sink_gets_the_events_of_its_sessions() -> None:
    buffer, one, both = LiveBuffer(), Sink(), Sink()
    tasks = [
        await follow(buffer, one, frozenset({ONE})),
        await follow(buffer, both, frozenset({ONE, TWO})),
    ]
    buffer.append(event(1, TWO))
    buffer.append(event(2, ONE))
    buffer.append(event(3, SessionId("session-3")))
    buffer.release()
    assert (one.batches, both.batches) == ([[2]], [[1, 2]])
    assert [await task for task in tasks] == [(3, 3)] * 2


async def test_sinks_that_fall_behind_the_buffer_read_the_log() -> None:
    buffer, sink = LiveBuffer(), Sink()
    following = await follow(buffer, sink)
    for position in range(1, MAX_LIVE_EVENTS + 3):
        buffer.append(event(position))
    index, position = await following
    assert (index, position) == (0, 0)
    assert index < buffer.base
    assert sink.batches == []


async def test_a_sink_that_fails_does_not_affect_the_others() -> None:
    buffer, encoder = LiveBuffer(), PositionEncoder()
    sink, failing = Sink(encoder), BrokenSink(encoder)
    broken, following = await follow(buffer, failing), await follow(buffer, sink)
    buffer.append(event(1))
    await sink.written.wait()
    assert await broken == (0, 0)
    buffer.release()
    assert await following == (1, 1)


async def test_a_cancelled_sink_leaves_the_buffer() -> None:
    buffer, sink = LiveBuffer(), Sink()
    following = await follow(buffer, sink)
    following.cancel()
    await asyncio.wait([following])
    buffer.append(event(1))
    assert not buffer.has_unwritten
    assert sink.batches == []


async def test_a_stream_with_a_sink_has_every_event_once(
    database: Database, stores: Stores, broadcaster: EventBroadcaster
) -> None:
    run = await add_running_run(database, stores, a_run())
    sink, yielded = Sink(), list[int]()

    async def publish(seq: int) -> None:
        broadcaster.publish(await database.write(lambda: append(stores, run, seq, RUNNING)))

    async def read() -> None:
        async with aclosing(broadcaster.watch(frozenset({ONE}), None, sink)) as batches:
            async for batch in batches:
                yielded.extend(item.position for item in batch if isinstance(item, EventRecord))
                if any(isinstance(item, ReplayDone) for item in batch):
                    live.set()
                if seen := yielded[-1:]:
                    has_yielded[seen[0]].set()

    live, has_yielded = asyncio.Event(), defaultdict[int, asyncio.Event](asyncio.Event)
    reading = asyncio.create_task(read())
    await live.wait()
    await publish(1)
    await sink.written.wait()
    sink.block()
    await publish(2)
    await has_yielded[2].wait()
    sink.is_ready = True
    await publish(3)
    await has_yielded[3].wait()
    sink.written.clear()
    await publish(4)
    await sink.written.wait()
    assert (sink.batches, yielded) == ([[1], [4]], [2, 3])
    broadcaster.close()
    await reading
