"""`kill -9` at every commit, during a stream and during a tool: nothing is lost or done twice.

`make test` runs one scenario, `make test SLOW=yes` the short form, a dozen crashes in three
scenarios; `make chaos` crashes before and after every commit. Random plans are seeded with
CHAOS_SEED and printed with a failure.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from tests.chaos import invariants
from tests.chaos.model_script import Steps, final, plan, scripted_model
from tests.chaos.restarting_gateway import NO_CRASH, RestartingGateway, restarting_gateway
from tests.chaos.scenario import INSTRUCTIONS, list_events, run_scenario
from tests.chaos.seeds import seeded
from tests.support.database_files import MIGRATION_COMMITS
from tests.support.openai_server import ScriptedOpenAI
from tests.support.postgres_server import postgres_url
from tests.support.process_kills import wait_for_event
from tests.support.scripted_model import Call, Reply

MAX_COMMITS = 44
"""More commits than the scenario has."""

Environ = dict[str, str]


A_DOZEN = pytest.mark.parametrize(
    "plans",
    [
        pytest.param(("before:1", "after:1", "after:3", "before:6"), marks=pytest.mark.slow),
        pytest.param(("before:13", "before:7", "after:17", "before:15"), marks=pytest.mark.slow),
        ("after:25", "after:1", "before:3", "term:14"),
    ],
    ids=" ".join,
)


@A_DOZEN
async def test_a_dozen_crashes(tmp_path: Path, environ: Environ, plans: tuple[str, ...]) -> None:
    await run_scenario(tmp_path, environ, [*plans, NO_CRASH])


@pytest.fixture
async def on_postgres(environ: Environ) -> AsyncGenerator[Environ]:
    async with postgres_url() as url:
        yield {**environ, "LARKSPUR_DATABASE__URL": url}


@pytest.mark.slow
@pytest.mark.postgres
@A_DOZEN
async def test_a_dozen_crashes_on_postgres(
    tmp_path: Path, on_postgres: Environ, plans: tuple[str, ...]
) -> None:
    gateway = await run_scenario(tmp_path, on_postgres, [*plans, NO_CRASH])
    assert gateway.codes.count(-signal.SIGKILL) >= len(plans) - 1


@pytest.mark.chaos
@pytest.mark.postgres
@pytest.mark.parametrize("number", range(1, MAX_COMMITS, 3))
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_crash_at_a_commit_on_postgres(
    tmp_path: Path, on_postgres: Environ, side: str, number: int
) -> None:
    await run_scenario(tmp_path, on_postgres, [f"{side}:{number}", NO_CRASH])


@pytest.mark.chaos
async def test_the_crash_numbers_cover_every_commit(tmp_path: Path, environ: Environ) -> None:
    gateway = await run_scenario(tmp_path, environ, [NO_CRASH])
    assert 20 < gateway.processes[0].commits < MAX_COMMITS


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(1, MAX_COMMITS))
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_crash_at_a_commit(
    tmp_path: Path, environ: Environ, side: str, number: int
) -> None:
    await run_scenario(tmp_path, environ, [f"{side}:{number}", NO_CRASH])


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(3, MAX_COMMITS, 4))
async def test_a_hand_over_at_a_commit(tmp_path: Path, environ: Environ, number: int) -> None:
    gateway = await run_scenario(tmp_path, environ, [f"term:{number}", NO_CRASH])
    assert set(gateway.codes) <= {0, 128 + signal.SIGTERM}  # the latter after a second signal


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(16))
async def test_crashes_during_the_resume(tmp_path: Path, environ: Environ, seed: int) -> None:
    rng = seeded(f"twice {seed}")
    plans = [f"{rng.choice(['before', 'after'])}:{rng.randint(3, 30)}"]
    plans += [f"{rng.choice(['before', 'after'])}:{rng.randint(1, 12)}" for _ in range(3)]
    await run_scenario(tmp_path, environ, [*plans, NO_CRASH])


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(16))
async def test_a_crash_at_a_random_time(tmp_path: Path, environ: Environ, seed: int) -> None:
    rng = seeded(f"alarm {seed}")
    plans = [f"alarm:{rng.uniform(0.4, 4.0):.6f}" for _ in range(2)]
    await run_scenario(tmp_path, environ, [*plans, NO_CRASH])


@asynccontextmanager
async def one_task(
    folder: Path, environ: Environ, steps: Steps, processes: int = 2
) -> AsyncGenerator[tuple[RestartingGateway, str, str]]:
    """Submit task A to a gateway that the test kills; yield gateway, task id and session id."""
    async with (
        ScriptedOpenAI(scripted_model(steps), record=False) as model,
        restarting_gateway(folder, model, environ, [NO_CRASH] * processes) as gateway,
    ):
        options = {"permission_mode": "all", "workspace": str(gateway.workspace)}
        made = await gateway.request(
            "POST", "/api/tasks", {"task": INSTRUCTIONS["A"], "options": options}
        )
        task = made.json()
        async with asyncio.timeout(90):
            yield gateway, task["task_id"], task["session_id"]


async def check_finished_run(
    gateway: RestartingGateway, session_id: str
) -> list[invariants.Envelope]:
    """Wait until the only run has ended, check its invariants and return its events."""
    async with aclosing(gateway.stream(f"session_id={session_id}")) as frames:
        async for frame in frames:
            if frame.event in invariants.TERMINAL:
                break
    events = await list_events(gateway, session_id)
    invariants.check_run(events)
    invariants.check_ledger(events, gateway.workspace / "ledger.txt")
    return list(events)


class BlockingCommand:
    """A command that reports its start and then blocks for ever."""

    def __init__(self, folder: Path, line: str) -> None:
        up, never = f"{line}.up", f"{line}.never"
        os.mkfifo(folder / up)
        os.mkfifo(folder / never)
        # for reading and writing: opening one end must not wait for the other
        self._end = os.open(folder / up, os.O_RDWR | os.O_NONBLOCK)
        self.call = Call(
            "shell", {"command": f"echo {line} >> ledger.txt; echo up > {up}; cat {never}"}
        )

    async def wait_until_started(self) -> None:
        loop, up = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._end, up.set)
        await up.wait()
        loop.remove_reader(self._end)
        os.close(self._end)


@pytest.mark.slow
async def test_crashes_during_a_stream_and_a_tool_and_a_stop_during_a_tool(
    tmp_path: Path, environ: Environ
) -> None:
    (tmp_path / "workspace").mkdir()
    first, second = (BlockingCommand(tmp_path / "workspace", line) for line in ("A1", "A2"))
    text = "A long first word about it."
    steps = {
        "A": (
            Reply(text=text, pieces=9, calls=[plan("write")], hold="go", after_pieces=4),
            Reply(calls=[first.call, Call("read_file", {"path": "notes.txt"})]),
            Reply(calls=[second.call]),
            final("A"),
        )
    }
    async with one_task(tmp_path, environ, steps, processes=4) as (gateway, _, session_id):
        await wait_for_event(gateway, session_id, "workflow.node.output.delta")
        gateway.signal(signal.SIGKILL)
        gateway.model.release("go")
        await first.wait_until_started()
        gateway.signal(signal.SIGKILL)
        await second.wait_until_started()
        gateway.signal(signal.SIGTERM)
        events = await check_finished_run(gateway, session_id)
        results = [e["payload"] for e in events if e["event"] == "workflow.tool.completed"]
        unknown = [result for result in results if invariants.UNKNOWN in result.get("error", "")]
        assert [result["tool_name"] for result in unknown] == ["shell", "shell"]
        assert (gateway.workspace / "ledger.txt").read_text().split() == ["A1", "A2"]
        assert events[-1]["payload"]["final_answer"] == final("A").text
    assert gateway.codes == [-signal.SIGKILL, -signal.SIGKILL, 0, 0]
    invariants.check_file(gateway.home / "larkspur.db")


@pytest.mark.slow
async def test_an_acknowledged_stop_survives_a_crash(tmp_path: Path, environ: Environ) -> None:
    steps = {
        "A": (
            Reply(calls=[plan("write")], hold="go"),
            Reply(calls=[Call("shell", {"command": "echo A1 >> ledger.txt"})]),
            final("A"),
        )
    }
    async with one_task(tmp_path, environ, steps) as (gateway, task_id, session_id):
        await gateway.model.until_open(1)
        stopped = await gateway.request("POST", f"/api/tasks/{task_id}/stop")
        gateway.signal(signal.SIGKILL)
        gateway.model.release("go")
        assert stopped.status == 200, stopped
        events = await check_finished_run(gateway, session_id)
        assert events[-1]["event"] == "workflow.result.cancelled"
        assert events[-1]["payload"]["requested_via"] == "web"
        assert not (gateway.workspace / "ledger.txt").exists()
        task = await gateway.get(f"/api/tasks/{task_id}")
        assert (task["status"], task["run"]["stop_reason"]) == ("cancelled", "user_stop")
    invariants.check_file(gateway.home / "larkspur.db")


@pytest.mark.chaos
@pytest.mark.parametrize("number", [2, 7, 12, 16])
async def test_the_run_of_a_killed_terminal_is_ended_by_the_next_start(
    tmp_path: Path, environ: Environ, number: int
) -> None:
    """The run is not resumed: it fails as interrupted when its lease has expired."""
    folder, short = tmp_path / "workspace", {**environ, "LARKSPUR_DISPATCH__LEASE_SECONDS": "1"}
    folder.mkdir()
    steps = {
        "A": (
            Reply(calls=[plan("write")]),
            Reply(calls=[Call("shell", {"command": "echo A1 >> ledger.txt"})]),
            Reply(text="never", hang=True),
        )
    }
    async with ScriptedOpenAI(scripted_model(steps), record=False) as model:
        alone = RestartingGateway(tmp_path, model, short)
        command = ("-p", INSTRUCTIONS["A"], "--permission-mode", "all")
        terminal = await alone.start(*command, plan=f"after:{MIGRATION_COMMITS + number}")
        async with asyncio.timeout(60):
            assert await terminal.wait() == -signal.SIGKILL, terminal.stderr_lines
        async with restarting_gateway(tmp_path, model, short, [NO_CRASH]) as gateway:
            (task,) = (await gateway.get("/api/tasks"))["tasks"]
            async with asyncio.timeout(60):
                events = await check_finished_run(gateway, task["session_id"])
            assert events[-1]["payload"]["stop_reason"] == "interrupted"
            task = await gateway.get(f"/api/tasks/{task['task_id']}")
            assert (task["status"], task["run"]["status"]) == ("failed", "failed")
