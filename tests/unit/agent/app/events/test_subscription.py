"""Cursors and buffers. Whole streams: test_broadcaster and tests/integration/agent."""

import asyncio

import pytest

from internal.agent.app.events.live_buffer import MAX_LIVE_EVENTS, LiveBuffer
from internal.agent.app.events.subscription import (
    MAX_RECENT_EVENTS,
    Cursor,
    RecentEvents,
    parse_cursor,
)
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import RunId, SessionId


@pytest.mark.parametrize(
    "text", ["", "abc", "abc-", "-3", "abc-x", "abc-٣", "a b-3", "abc-" + "9" * 30, "x" * 20 + "-1"]
)
def test_text_that_is_not_an_event_id_is_rejected(text: str) -> None:
    with pytest.raises(InvalidRequest, match="not an event id"):
        parse_cursor(text)


def test_a_cursor_survives_a_round_trip_through_its_event_id() -> None:
    assert parse_cursor(str(Cursor("k3x9ap", 17))) == Cursor("k3x9ap", 17)


def record(position: int, size: int = 10) -> EventRecord:
    json = b"x" * size
    return EventRecord(
        SessionId("session-1"), RunId("run-1"), "workflow.node.started", json, position
    )


def test_recent_events_are_contiguous() -> None:
    recent = RecentEvents()
    assert recent.after(0) is None
    for position in range(5, MAX_RECENT_EVENTS + 10):
        recent.append(record(position), contiguous=True)
    assert recent.after(3) is None
    kept = recent.after(MAX_RECENT_EVENTS + 4)
    assert kept is not None
    assert [each.position for each in kept] == [MAX_RECENT_EVENTS + at for at in range(5, 10)]
    recent.append(record(9000), contiguous=False)
    assert recent.after(MAX_RECENT_EVENTS + 9) is None
    assert recent.after(8999) == [record(9000)]
    recent.append(record(9001, size=20_000_000), contiguous=True)
    assert recent.after(9001) is None


def test_events_of_a_deleted_session_are_in_no_buffer() -> None:
    recent, buffer = RecentEvents(), LiveBuffer()
    for position in range(1, 7):
        session_id = SessionId("session-1" if position % 2 else "session-2")
        event = EventRecord(session_id, RunId("run"), "workflow.node.started", b"x", position)
        recent.append(event, contiguous=True)
        buffer.append(event)
    for each in (recent, buffer):
        each.forget_session(SessionId("session-1"))
    kept = recent.after(1)
    assert kept is not None
    assert [each.position for each in kept] == [2, 4, 6]
    assert recent.after(0) is None, "the log is read instead"
    assert (buffer.base, buffer.end) == (0, 6)
    assert [each.position for each in buffer.since(2, 0)] == [4, 6]


def test_the_live_buffer_keeps_the_newest_events() -> None:
    buffer = LiveBuffer()
    for position in range(1, MAX_LIVE_EVENTS + 11):
        buffer.append(record(position))
    assert (buffer.base, buffer.end) == (10, MAX_LIVE_EVENTS + 10)
    assert [each.position for each in buffer.since(buffer.end - 2, 0)] == [
        MAX_LIVE_EVENTS + 9,
        MAX_LIVE_EVENTS + 10,
    ]
    assert buffer.since(buffer.end - 2, MAX_LIVE_EVENTS + 9) == [record(MAX_LIVE_EVENTS + 10)]


async def test_ephemeral_events_wake_at_intervals_and_stored_ones_at_once() -> None:
    buffer = LiveBuffer()
    loop, woken = asyncio.get_running_loop(), []

    async def wait() -> None:
        await buffer.changed()
        woken.append(loop.time())

    for _ in range(2):  # the first ephemeral event wakes at once, the next one after the interval
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        buffer.append(record(0))
        buffer.append(record(0))
        await waiting
    assert woken[1] - woken[0] > 0.015
    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    buffer.append(record(0))
    buffer.append(record(9999))  # a stored event does not wait
    await waiting
    assert woken[2] - woken[1] < 1
