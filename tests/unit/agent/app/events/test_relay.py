"""Live output of one process for the subscribers of another."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import msgspec
import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.relay import LiveRelay
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.events.envelope import EventRecord, RunIds, wrap_event
from internal.agent.domain.events.types import Event, OutputDelta, Partial
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from tests.support.database_wrapper import DatabaseWrapper
from tests.support.store_records import T0

IDS = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-1"))
NODE = "iter:1:say"


class Messages:
    """Messages between the processes of this test, as seen by one of them."""

    def __init__(self, others: list["Messages"]) -> None:
        self._others = others
        self._callbacks: list[Callable[[str], None]] = []
        self.sent: list[str] = []
        others.append(self)

    def send(self, text: str) -> None:
        self.sent.append(text)
        for other in self._others:
            if other is not self:
                for callback in other._callbacks:
                    callback(text)

    @contextmanager
    def listen(self, callback: Callable[[str], None]) -> Generator[None]:
        self._callbacks.append(callback)
        try:
            yield
        finally:
            self._callbacks.remove(callback)


class WithMessages(DatabaseWrapper):
    """A database with the messages of this test."""

    def __init__(self, database: Database, messages: Messages) -> None:
        super().__init__(database)
        self._messages = messages

    @property
    def messages(self) -> Messages:
        return self._messages


@asynccontextmanager
async def process(
    database: Database, stores: Stores, messages: Messages
) -> AsyncGenerator[EventBroadcaster]:
    broadcaster = EventBroadcaster(WithMessages(database, messages), stores, SystemClock(), "1.2.3")
    await broadcaster.start()
    async with background_task(broadcaster.follow(Supervisor(SystemClock()))):
        await asyncio.sleep(0)  # one step: it listens
        yield broadcaster


@pytest.fixture
async def processes(
    database: Database, stores: Stores
) -> AsyncGenerator[tuple[EventBroadcaster, EventBroadcaster, Messages]]:
    """Return one that executes, one that shows, and the messages of the first."""
    line: list[Messages] = []
    messages = Messages(line)
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(process(database, stores, messages))
        there = await stack.enter_async_context(process(database, stores, Messages(line)))
        yield here, there, messages


def record(event: Event) -> EventRecord:
    return EventRecord.ephemeral(wrap_event(IDS, event, T0, None))


def say(broadcaster: EventBroadcaster, k: int, text: str) -> None:
    broadcaster.publish([record(OutputDelta(node_id=NODE, k=k, n=1, text=text))])


def shown(item: object) -> str:
    """Return the event and its text, "" for other items of a stream."""
    if not isinstance(item, EventRecord):
        return ""
    payload = msgspec.json.decode(item.json)["payload"]
    return f"{item.event.rpartition('.')[2]} {payload['k']} {payload['text']}"


async def texts(broadcaster: EventBroadcaster) -> AsyncGenerator[str]:
    async for batch in broadcaster.watch(frozenset({IDS.session_id}), None):
        for item in batch:
            yield shown(item)


async def test_deltas_reach_the_subscribers_of_another_process(
    processes: tuple[EventBroadcaster, EventBroadcaster, Messages],
) -> None:
    here, there, messages = processes
    say(here, 1, "Nobody ")
    say(here, 2, "watches")
    assert not messages.sent

    stream = texts(there)
    async with asyncio.timeout(30):
        found = [await anext(stream), await anext(stream), await anext(stream)]
        assert found == ["", "", "partial 2 Nobody watches"]
        say(here, 3, " this")
        say(here, 4, " run")
        assert await anext(stream) == "delta 4  this run"
    await stream.aclose()


async def test_a_second_subscriber_receives_the_text_so_far(
    processes: tuple[EventBroadcaster, EventBroadcaster, Messages],
) -> None:
    here, there, _ = processes
    first = texts(there)
    async with asyncio.timeout(30):
        assert [await anext(first), await anext(first)] == ["", ""]
        say(here, 1, "One")
        second = texts(there)
        found: list[str] = []
        while found[-1:] != ["partial 1 One"]:
            found.append(await anext(second))
        # the delta may be sent before the second subscription is live
        assert found in (["", "", "delta 1 One", "partial 1 One"], ["", "", "partial 1 One"])
    await first.aclose()
    await second.aclose()


async def test_only_sessions_that_are_shown_are_sent(
    processes: tuple[EventBroadcaster, EventBroadcaster, Messages],
) -> None:
    here, there, messages = processes
    other = there.watch(frozenset({SessionId("session-2")}), None)
    await anext(other)
    say(here, 1, "One")
    here.publish([record(Partial(node_id=NODE, k=0, text=""))])
    assert not messages.sent
    await other.aclose()


async def test_messages_that_cannot_be_read_are_skipped() -> None:
    line: list[Messages] = []
    here, there = Messages(line), Messages(line)
    heard: list[EventRecord] = []
    relay = LiveRelay(here, heard.append, lambda _: [])
    with relay.open():
        for text in ("", "{", '{"type": "later"}', '{"type": "live"}', "[1]", "\0"):
            there.send(text)
    assert not heard
    assert not here.sent
