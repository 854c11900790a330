"""`kill -9` at every commit boundary, in mid-stream and in mid-tool: nothing lost, nothing twice.

The short form, a dozen kills in three scenes, belongs to `make test`; `make chaos` kills before and
after every single commit. What is drawn by lot comes from CHAOS_SEED and stands in a failure's note
as the plans of the processes, which replay it.
"""

import asyncio
import os
import random
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from tests.chaos import oracle
from tests.chaos.house import LIVES, House, open_house
from tests.chaos.scene import WORDS, events_of, play
from tests.chaos.script import Steps, final, plan, scripted
from tests.support.anthropic_server import Call, Reply, ScriptedAnthropic

SEED = os.environ.get("CHAOS_SEED", "1")  # noqa: TID251 - a word to this test, not to Larkspur
MOST = 56
"""More commits than the scene has."""

Environ = dict[str, str]


@pytest.mark.parametrize(
    "plans",
    [
        ("before:1", "after:1", "after:3", "before:6"),
        ("before:13", "before:7", "after:10", "before:12"),
        ("after:25", "after:1", "before:3", "term:14"),
    ],
    ids=" ".join,
)
async def test_a_dozen_kills(tmp_path: Path, environ: Environ, plans: tuple[str, ...]) -> None:
    await play(tmp_path, environ, [*plans, LIVES])


@pytest.mark.chaos
async def test_the_numbers_reach_the_last_commit(tmp_path: Path, environ: Environ) -> None:
    house = await play(tmp_path, environ, [LIVES])
    assert 20 < house.gateways[0].commits < MOST


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(1, MOST))
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_kill_at_a_commit(tmp_path: Path, environ: Environ, side: str, number: int) -> None:
    await play(tmp_path, environ, [f"{side}:{number}", LIVES])


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(3, MOST, 4))
async def test_a_hand_over_at_a_commit(tmp_path: Path, environ: Environ, number: int) -> None:
    house = await play(tmp_path, environ, [f"term:{number}", LIVES])
    assert set(house.codes) <= {0, 128 + signal.SIGTERM}  # the latter when it was told twice


@pytest.mark.chaos
@pytest.mark.parametrize("lot", range(16))
async def test_crashes_during_the_resume(tmp_path: Path, environ: Environ, lot: int) -> None:
    drawn = random.Random(f"{SEED} twice {lot}")  # noqa: S311 - chaos, not a secret
    plans = [f"{drawn.choice(['before', 'after'])}:{drawn.randint(3, 30)}"]
    plans += [f"{drawn.choice(['before', 'after'])}:{drawn.randint(1, 12)}" for _ in range(3)]
    await play(tmp_path, environ, [*plans, LIVES])


@pytest.mark.chaos
@pytest.mark.parametrize("lot", range(16))
async def test_a_kill_at_any_microsecond(tmp_path: Path, environ: Environ, lot: int) -> None:
    drawn = random.Random(f"{SEED} alarm {lot}")  # noqa: S311 - chaos, not a secret
    plans = [f"alarm:{drawn.uniform(0.4, 4.0):.6f}" for _ in range(2)]
    await play(tmp_path, environ, [*plans, LIVES])


@asynccontextmanager
async def one_task(
    folder: Path, environ: Environ, steps: Steps, processes: int = 2
) -> AsyncGenerator[tuple[House, str, str]]:
    """Give task A to a gateway that is killed from outside; yields house, task and session."""
    async with (
        ScriptedAnthropic(scripted(steps), record=False) as model,
        open_house(folder, model, environ, [LIVES] * processes) as house,
    ):
        options = {"permission_mode": "full", "workspace": str(house.workspace)}
        made = await house.ask("POST", "/api/tasks", {"task": WORDS["A"], "options": options})
        given = made.json()
        async with asyncio.timeout(90):
            yield house, given["task_id"], given["session_id"]


async def seen(house: House, session_id: str, event: str) -> None:
    """Return when a reader was shown such an event."""
    async with aclosing(house.watch(f"session_id={session_id}")) as frames:
        async for frame in frames:
            if frame.event == event:
                return


async def checked(house: House, session_id: str) -> list[oracle.Envelope]:
    """Return the only run's events when it has ended, held to be sound."""
    async with aclosing(house.watch(f"session_id={session_id}")) as frames:
        async for frame in frames:
            if frame.event in oracle.TERMINAL:
                break
    events = await events_of(house, session_id)
    oracle.check_run(events)
    oracle.check_ledger(events, house.workspace / "ledger.txt")
    return list(events)


class Pipe:
    """Where a command says that it has begun; it then waits for an answer that never comes."""

    def __init__(self, folder: Path, line: str) -> None:
        up, never = f"{line}.up", f"{line}.never"
        os.mkfifo(folder / up)
        os.mkfifo(folder / never)
        # read and write: opening one end must not wait for the other
        self._end = os.open(folder / up, os.O_RDWR | os.O_NONBLOCK)
        self.call = Call(
            "shell", {"command": f"echo {line} >> ledger.txt; echo up > {up}; cat {never}"}
        )

    async def begun(self) -> None:
        loop, up = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._end, up.set)
        await up.wait()
        loop.remove_reader(self._end)
        os.close(self._end)


async def test_a_kill_in_mid_stream_in_mid_tool_and_a_stop_in_mid_tool(
    tmp_path: Path, environ: Environ
) -> None:
    (tmp_path / "workspace").mkdir()
    first, second = (Pipe(tmp_path / "workspace", line) for line in ("A1", "A2"))
    text = "A long first word about it."
    steps = {
        "A": (
            Reply(text=text, pieces=9, calls=[plan("write")], hold="go", after_pieces=4),
            Reply(calls=[first.call, Call("read_file", {"path": "notes.txt"})]),
            Reply(calls=[second.call]),
            final("A"),
        )
    }
    async with one_task(tmp_path, environ, steps, processes=4) as (house, _, session_id):
        await seen(house, session_id, "workflow.node.output.delta")
        house.signal(signal.SIGKILL)
        house.model.release("go")
        await first.begun()
        house.signal(signal.SIGKILL)
        await second.begun()
        house.signal(signal.SIGTERM)
        events = await checked(house, session_id)
        results = [e["payload"] for e in events if e["event"] == "workflow.tool.completed"]
        unknown = [result for result in results if result.get("error") == oracle.UNKNOWN]
        assert [result["tool_name"] for result in unknown] == ["shell", "shell"]
        assert (house.workspace / "ledger.txt").read_text().split() == ["A1", "A2"]
        assert events[-1]["payload"]["final_answer"] == final("A").text
    assert house.codes == [-signal.SIGKILL, -signal.SIGKILL, 0, 0]
    oracle.check_file(house.home / "larkspur.db")


async def test_a_stop_that_was_acknowledged_holds_through_a_kill(
    tmp_path: Path, environ: Environ
) -> None:
    steps = {
        "A": (
            Reply(calls=[plan("write")], hold="go"),
            Reply(calls=[Call("shell", {"command": "echo A1 >> ledger.txt"})]),
            final("A"),
        )
    }
    async with one_task(tmp_path, environ, steps) as (house, task_id, session_id):
        await house.model.until_open(1)
        stopped = await house.ask("POST", f"/api/tasks/{task_id}/stop")
        house.signal(signal.SIGKILL)
        house.model.release("go")
        assert stopped.status == 200, stopped
        events = await checked(house, session_id)
        assert events[-1]["event"] == "workflow.result.cancelled"
        assert events[-1]["payload"]["requested_via"] == "web"
        assert not (house.workspace / "ledger.txt").exists()
        task = await house.get(f"/api/tasks/{task_id}")
        assert (task["status"], task["run"]["stop_reason"]) == ("cancelled", "user_stop")
    oracle.check_file(house.home / "larkspur.db")


@pytest.mark.chaos
@pytest.mark.parametrize("number", [4, 9, 14, 18])
async def test_a_killed_terminals_run_is_ended_by_the_next_start(
    tmp_path: Path, environ: Environ, number: int
) -> None:
    """It does not go on by itself: it is failed, interrupted, once its lease is over."""
    folder, short = tmp_path / "workspace", {**environ, "LARKSPUR_DISPATCH__LEASE_SECONDS": "1"}
    folder.mkdir()
    steps = {
        "A": (
            Reply(calls=[plan("write")]),
            Reply(calls=[Call("shell", {"command": "echo A1 >> ledger.txt"})]),
            Reply(text="never", hang=True),
        )
    }
    async with ScriptedAnthropic(scripted(steps), record=False) as model:
        alone = House(tmp_path, model, short)
        command = ("-p", WORDS["A"], "--permission-mode", "full")
        terminal = await alone.start(*command, plan=f"after:{number}")
        async with asyncio.timeout(60):
            assert await terminal.over() == -signal.SIGKILL, terminal.said
        async with open_house(tmp_path, model, short, [LIVES]) as house:
            (task,) = (await house.get("/api/tasks"))["tasks"]
            async with asyncio.timeout(60):
                events = await checked(house, task["session_id"])
            assert events[-1]["payload"]["stop_reason"] == "interrupted"
            task = await house.get(f"/api/tasks/{task['task_id']}")
            assert (task["status"], task["run"]["status"]) == ("failed", "failed")
