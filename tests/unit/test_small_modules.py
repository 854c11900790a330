"""The folder's lock, logs, listeners, cursors, tails: small things that others stand on."""

import asyncio
import io
import logging
from pathlib import Path

import pytest

from internal.agent.app.events.cursor import Cursor, parse_cursor
from internal.agent.app.events.live_buffer import MOST_FRAMES as MOST_IN_TAIL
from internal.agent.app.events.live_buffer import LiveBuffer
from internal.agent.app.events.queued_listener import MOST_WAITING, QueuedListener
from internal.agent.app.events.recent import MOST_FRAMES, RecentEvents
from internal.agent.app.events.stream_items import Frame
from internal.agent.app.runs.preparation import system_prompt
from internal.agent.app.runs.session_title import one_line
from internal.agent.domain.errors import Conflict, InvalidRequest, StoreUnavailable
from internal.agent.domain.events.envelope import RunIds, WorkflowEventEnvelope, wrap_event
from internal.agent.domain.events.types import LifecycleUpdated
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.profiles import Profile
from internal.dispatch.lock import dispatcher_lock
from internal.observability.clock import SystemClock
from internal.observability.logs import HIDDEN, Lines, log_to
from internal.tools.registry import TOOLS

RUN = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-1"))


def frame(position: int, size: int = 10) -> Frame:
    return Frame(position, RUN.session_id, RUN.run_id, "workflow.node.started", b"x" * size)


def envelope() -> WorkflowEventEnvelope:
    return wrap_event(RUN, LifecycleUpdated(status="running", phase="x"), "2026", 1)


def held_again(folder: Path) -> None:
    with dispatcher_lock(folder):
        raise AssertionError("two dispatchers")


def test_one_dispatcher_a_folder(tmp_path: Path) -> None:
    with dispatcher_lock(tmp_path), pytest.raises(Conflict, match="Another larkspur"):
        held_again(tmp_path)
    with dispatcher_lock(tmp_path):
        pass
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        held_again(tmp_path / "none")


@pytest.mark.parametrize(
    "text", ["", "abc", "abc-", "-3", "abc-x", "abc-٣", "a b-3", "abc-" + "9" * 30, "x" * 20 + "-1"]
)
def test_a_wire_id_that_is_none(text: str) -> None:
    with pytest.raises(InvalidRequest, match="not an event id"):
        parse_cursor(text)


def test_a_wire_id_goes_there_and_back() -> None:
    assert parse_cursor(str(Cursor("k3x9ap", 17))) == Cursor("k3x9ap", 17)


def test_a_log_line_has_its_fields_and_no_secret_and_no_forged_line() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        log_to(stream, ["sk-canary", ""])
        logger = logging.getLogger("internal.tests")
        logger.info(
            "run finished", extra={"run_id": "run-1", "why": "a b\nFORGED", "key": "x sk-canary"}
        )
        logger.error("broke", exc_info=ValueError("sk-canary"))
        logging.getLogger("somebody").info("not heard")
    finally:
        root.handlers, root.level = before, level
    lines = stream.getvalue().splitlines()
    assert "INFO run finished run_id=run-1" in lines[0]
    assert "FORGED" in lines[0]
    assert "sk-canary" not in stream.getvalue()
    assert HIDDEN in stream.getvalue()
    assert "not heard" not in stream.getvalue()
    assert lines[-1].startswith("ValueError")
    assert Lines([]).format(logging.makeLogRecord({"msg": "x", "levelname": "INFO", "n": ""}))


def test_titles_are_one_short_line() -> None:
    assert one_line("\n  write   the report\nwith charts") == "write the report"
    assert one_line(" \n ") == ""
    assert len(one_line("x" * 500)) < 130


def test_a_prompt_says_who_the_agent_is() -> None:
    profile = Profile(role="a gardener", goal="grow", tone="dry", prompt="Mind the roses.")
    prompt = system_prompt(profile, "off", "/srv/garden", SystemClock().now())
    for words in ("a gardener", "grow", "dry", "Mind the roses.", "/srv/garden"):
        assert words in prompt
    assert "call `plan`" not in prompt
    assert "call `plan`" in system_prompt(profile, "strict", "/srv", SystemClock().now())


def test_recent_frames_are_an_unbroken_piece_of_the_log() -> None:
    recent = RecentEvents()
    assert recent.after(0) is None
    for position in range(5, MOST_FRAMES + 10):
        recent.append(frame(position), unbroken=True)
    assert recent.after(3) is None
    kept = recent.after(MOST_FRAMES + 4)
    assert kept is not None
    assert [each.position for each in kept] == [MOST_FRAMES + at for at in range(5, 10)]
    recent.append(frame(9000), unbroken=False)
    assert recent.after(MOST_FRAMES + 9) is None
    assert recent.after(8999) == [frame(9000)]
    recent.append(frame(9001, size=20_000_000), unbroken=True)
    assert recent.after(9001) is None


async def test_a_tail_keeps_the_newest_and_wakes_in_a_steady_pace() -> None:
    tail = LiveBuffer()
    for position in range(1, MOST_IN_TAIL + 11):
        tail.append(frame(position))
    assert (tail.base, tail.end) == (10, MOST_IN_TAIL + 10)
    assert [each.position for each in tail.since(tail.end - 2, 0)] == [
        MOST_IN_TAIL + 9,
        MOST_IN_TAIL + 10,
    ]
    assert tail.since(tail.end - 2, MOST_IN_TAIL + 9) == [frame(MOST_IN_TAIL + 10)]
    loop, woken = asyncio.get_running_loop(), []

    async def wait() -> None:
        await tail.changed()
        woken.append(loop.time())

    for _ in range(2):  # the first ephemeral at once, the next one after the pace
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        tail.append(frame(0))
        tail.append(frame(0))
        await waiting
    assert woken[1] - woken[0] > 0.015
    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    tail.append(frame(0))
    tail.append(frame(9999))  # a durable one does not wait
    await waiting
    assert woken[2] - woken[1] < 1


class Slow:
    """A listener that raises at first, then waits until it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.taken = 0

    async def on_event(self, envelope: WorkflowEventEnvelope, /) -> None:
        self.taken += 1
        if self.taken == 1:
            raise ValueError("cannot take this one")
        await self.go.wait()


async def test_a_slow_listener_loses_what_does_not_fit_and_delays_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slow = Slow()
    queued = QueuedListener(slow)
    for _ in range(MOST_WAITING + 5):
        await queued.on_event(envelope())
    assert sum("too slow" in record.message for record in caplog.records) == 5
    listening = asyncio.create_task(queued.listen())
    slow.go.set()
    await queued.drained()
    assert slow.taken == MOST_WAITING
    assert any("listener failed" in record.message for record in caplog.records)
    listening.cancel()


def test_permission_rules_find_what_they_look_at() -> None:
    """Rules read `command`, `path` and `url`; a tool with other names would slip through."""
    looked_at = {"shell": "command", "web_fetch": "url", "search_files": "path"}
    for tool in TOOLS:
        wanted = looked_at.get(tool.spec.name, "path")
        assert wanted in tool.spec.parameters["properties"], tool.spec.name
