"""Replies with long arguments are reviewed in a thread: other runs and channels go on meanwhile."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import ClassVar

import pytest

from internal.agent.domain.messages import ToolCall, ToolResult
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.react.call_review import MAX_SHORT_CHARACTERS
from internal.agent.domain.react.gates import GATES, Correction, GateContext
from internal.agent.domain.react.turn import NOT_RUN
from tests.support.agent_app import open_agent, sound
from tests.support.anthropic_server import Call, Reply, Rules, When

OTHER = "another task"
GATES_OFF = {"LARKSPUR_AGENT__GATES": "off"}
NOTHING = Reply(text="Nothing to do.", when=When(last_text=OTHER))
LONG = Reply(
    calls=[
        Call("write_file", {"path": name, "content": "x" * MAX_SHORT_CHARACTERS}) for name in "ab"
    ]
)


class WaitingGate:
    """A gate that holds the review of a call until it is released, and corrects nothing."""

    name: ClassVar[str] = "waiting"

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.reached = asyncio.Event()
        self.on_loop: list[bool] = []
        self._released = threading.Event()

    def check(self, _context: GateContext, _call: ToolCall, /) -> Correction | None:
        is_on_loop = threading.current_thread() is threading.main_thread()
        self.on_loop.append(is_on_loop)
        self._loop.call_soon_threadsafe(self.reached.set)
        if not is_on_loop:
            self._released.wait()
        return None

    def release(self) -> None:
        self._released.set()


@pytest.fixture
async def gate() -> AsyncGenerator[WaitingGate]:
    """The only gate of runs with the gates off."""
    gate, registered = WaitingGate(), GATES["off"]
    GATES["off"] = (gate,)
    yield gate
    GATES["off"] = registered
    gate.release()


async def test_another_run_begins_and_ends_while_a_long_reply_is_reviewed(
    home: Path, gate: WaitingGate
) -> None:
    rules = Rules([NOTHING, Reply(text="Done.", when=When(all_results=2)), LONG])
    async with open_agent(home, rules, GATES_OFF) as here:
        made = await here.submit("write")
        await gate.reached.wait()
        events = await here.end_of(await here.submit(OTHER))
        assert events[-1]["payload"]["final_answer"] == "Nothing to do."
        assert (await here.run(made)).status == "running"
        gate.release()
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "Done."
        assert gate.on_loop == [False, False]


async def test_a_stop_waits_for_the_review_and_runs_no_call(home: Path, gate: WaitingGate) -> None:
    async with open_agent(home, Rules([NOTHING, LONG]), GATES_OFF) as here:
        made = await here.submit("write")
        await gate.reached.wait()
        assert await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web") == "running"
        await here.end_of(await here.submit(OTHER))
        assert (await here.run(made)).status == "running"
        gate.release()
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["event"] == "workflow.result.cancelled"
        assert gate.on_loop == [False, False]
        assert not any(each["event"] == "workflow.tool.started" for each in events)
        rows = await here.services.gateway.queries.messages(made.session_id, LOCAL_OWNER)
        parts = [part for row in rows for part in row.message.parts]
        results = [part for part in parts if isinstance(part, ToolResult)]
        assert [result.text for result in results] == [NOT_RUN, NOT_RUN]


async def test_a_short_reply_is_reviewed_on_the_event_loop(home: Path, gate: WaitingGate) -> None:
    short = Reply(calls=[Call("write_file", {"path": "a", "content": "x" * 50})])
    async with open_agent(home, [short, Reply(text="Done.")], GATES_OFF) as here:
        await here.end_of(await here.submit("write"))
        assert gate.on_loop == [True]
