"""Background commands with real processes: their output, their end, and who sees them."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import NotFound, ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.observability.clock import SystemClock
from internal.tools.commands.background import MAX_RUNNING, BackgroundCommandPool
from internal.tools.instruction_trust import InstructionTrust
from tests.support.tools import tool_box

SESSION, RUN = SessionId("s"), RunId("r")


class Agent:
    """The calls of runs, and the pool behind them."""

    def __init__(self, folder: Path) -> None:
        self.pool = BackgroundCommandPool(SystemClock(), InstructionTrust(folder.parent))
        self.box = tool_box(folder, background=self.pool)
        self.folder = folder

    async def call(
        self, tool: str, *, session: str = SESSION, run: str = RUN, **arguments: Any
    ) -> ToolOutcome:
        context = CallContext(
            SessionId(session), RunId(run), "c", str(self.folder), lambda _text: None
        )
        return await self.box.run(context, tool, arguments)

    async def start(self, command: str, **more: Any) -> str:
        outcome = await self.call("shell", command=command, background=True, **more)
        return str(outcome.metadata["background"])

    async def read_all(self, command_id: str, since: int = 0) -> str:
        """Read on until the command has ended; return its whole output, without notes."""
        text = ""
        while True:
            outcome = await self.call("shell_output", id=command_id, since=since, wait_seconds=60)
            text += "\n".join(outcome.text.splitlines()[:-1])
            if not outcome.metadata["running"]:
                return text
            since = outcome.metadata["next"]


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncGenerator[Agent]:
    one = Agent(tmp_path)
    yield one
    await one.pool.close()


async def test_output_is_read_piece_by_piece_while_the_command_runs(agent: Agent) -> None:
    fifo = agent.folder / "go"
    command_id = await agent.start(
        "mkfifo go; echo ready; read -r line <go; echo got $line; exit 4"
    )
    assert re.fullmatch(r"bg-[0-9a-f]{6}", command_id)
    first = await agent.call("shell_output", id=command_id, wait_seconds=60)
    assert first.text == f"ready\n[it runs; read on with since={first.metadata['next']}]"
    await asyncio.to_thread(fifo.write_text, "音\n")
    assert await agent.read_all(command_id, first.metadata["next"]) == "got 音"
    last = await agent.call("shell_output", id=command_id)
    assert last.text == "ready\ngot 音\n[exit code 4]"
    (record,) = agent.pool.of_session(SESSION)
    assert (record.exit_code, record.kept, record.output_bytes) == (4, False, 14)
    assert record.ended is not None
    stopped = await agent.call("shell_stop", id=command_id)  # it stays as it is
    assert stopped.text == f"[{command_id} has ended, exit code 4]"


async def test_a_command_that_fails_at_once_is_reported_at_once(agent: Agent) -> None:
    outcome = await agent.call("shell", command="nowhere-to-be-found", background=True)
    text = outcome.text
    if "runs in the background" in text:  # slower than the first look
        text = await agent.read_all(outcome.metadata["background"])
    assert "not found" in text


async def test_a_character_is_never_cut(agent: Agent) -> None:
    command_id = await agent.start(
        r"mkfifo go; printf 'a\xe9\x9f'; read -r line <go; printf '\xb3'; printf '\xff'"
    )
    first = await agent.call("shell_output", id=command_id, wait_seconds=60)
    assert (first.text.splitlines()[0], first.metadata["next"]) == ("a", 1)
    await asyncio.to_thread((agent.folder / "go").write_text, "\n")
    assert await agent.read_all(command_id) == "a音\ufffd"


async def test_only_the_end_of_long_output_is_kept(agent: Agent) -> None:
    command_id = await agent.start("seq 1 200000")
    await agent.read_all(command_id)
    outcome = await agent.call("shell_output", id=command_id)
    assert re.match(r"\[[0-9,]+ bytes before this are no longer kept\]", outcome.text)
    assert outcome.text.endswith("200000\n[exit code 0]")
    assert len(outcome.text) < 31_000
    beyond = await agent.call("shell_output", id=command_id, since=10**9)
    assert beyond.text == "[exit code 0]"


async def test_commands_end_with_their_run_and_kept_ones_with_their_session(agent: Agent) -> None:
    options: dict[str, dict[str, Any]] = {
        "own": {},
        "kept": {"keep": True},
        "other": {"run": "r2"},
        "foreign": {"session": "s2", "run": "r3"},
    }
    ids = {
        name: await agent.start(f"echo $$ >{name}; exec sleep 600", **more)
        for name, more in options.items()
    }
    await agent.pool.end_run(RUN)
    running = {each.id for each in agent.pool.of_session(SESSION) if each.ended is None}
    assert running == {ids["kept"], ids["other"]}
    assert (await agent.call("shell_output", id=ids["own"])).text == "[stopped]"
    with pytest.raises(ToolError, match="There is no background command"):
        await agent.call("shell_output", id=ids["foreign"])
    with pytest.raises(ToolError, match="it ended with its run"):
        await agent.call("shell_stop", id="bg-000000")
    await agent.pool.end_session(SESSION)
    assert agent.pool.of_session(SESSION) == []
    (left,) = agent.pool.of_session(SessionId("s2"))
    assert left.ended is None
    await agent.pool.close()
    for name in ("own", "kept", "other", "foreign"):
        pid = (agent.folder / name).read_text().strip()
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


@pytest.mark.slow
async def test_a_session_has_a_limited_number_of_commands(agent: Agent) -> None:
    ids = [await agent.start("sleep 600") for _ in range(MAX_RUNNING)]
    with pytest.raises(ToolError, match="run already: stop one with shell_stop"):
        await agent.start("sleep 600")
    await agent.call("shell_stop", id=ids[0])
    await agent.start("sleep 600")
    for _ in range(40):  # what ended is forgotten, oldest first
        await agent.call("shell_stop", id=agent.pool.of_session(SESSION)[-1].id)
        await agent.start("sleep 600")
    listed = agent.pool.of_session(SESSION)
    assert len(listed) <= 32
    assert set(ids[1:]) <= {each.id for each in listed}
    with pytest.raises(NotFound):
        await agent.pool.stop(SESSION, ids[0])


async def test_output_is_read_after_the_end_of_the_process(tmp_path: Path) -> None:
    work, kept = tmp_path / "work", tmp_path / "commands"
    work.mkdir()
    one = Agent(work)
    one.pool = BackgroundCommandPool(SystemClock(), InstructionTrust(tmp_path), kept)
    one.box = tool_box(work, background=one.pool)
    line = "printf 'at http://localhost:\\033[1m5173\\033[0m/\\n1%%\\r2%%\\n'"
    ended = await one.start(f"{line}; exit 3")
    await one.read_all(ended)
    running = await one.start("echo up; exec sleep 600")
    await one.call("shell_output", id=running, wait_seconds=60)

    def later() -> BackgroundCommandPool:
        return BackgroundCommandPool(SystemClock(), InstructionTrust(tmp_path), kept)

    assert [each.ended is None for each in later().of_session(SESSION)] == [False, True]
    await one.pool.close()
    first, second = (later().read_last(SESSION, each) for each in (ended, running))
    assert (first.text, first.end) == ("at http://localhost:5173/\n2%\n", "[exit code 3]")
    assert (first.command.address, first.command.exit_code) == ("http://localhost:5173/", 3)
    assert (second.text, second.end) == ("up\n", "[stopped]")
    with pytest.raises(NotFound):
        later().read_last(SessionId("t"), ended)
    await later().end_session(SESSION)
    assert not later().of_session(SESSION)
