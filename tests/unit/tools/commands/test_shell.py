"""The shell tool: bounded output and exit code of a command."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.sandbox import SandboxCapabilities, SandboxCommand, SandboxResult
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.tools.commands.shell import shell
from tests.support.tools import tool_box


class Shell:
    def __init__(self, folder: Path) -> None:
        self.box = tool_box(folder)
        self.live = ""
        self.ready = asyncio.Event()
        self.context = CallContext(SessionId("s"), RunId("r"), "c", str(folder), self.progress)

    def progress(self, text: str) -> None:
        self.live += text
        if "ready" in self.live:
            self.ready.set()

    async def __call__(self, command: str, **more: object) -> ToolOutcome:
        return await self.box.run(self.context, "shell", {"command": command, **more})


@pytest.fixture
def run(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


async def test_output_and_exit_code(run: Shell, tmp_path: Path) -> None:
    outcome = await run("pwd; echo oops >&2; exit 3")
    assert outcome.text == f"{tmp_path}\noops\n[exit code 3]"
    assert outcome.metadata == {"exit_code": 3, "timed_out": False, "isolated": False}
    assert (await run("true")).text == "[exit code 0]"


async def test_bash_reads_no_start_up_file_of_the_workspace(run: Shell, tmp_path: Path) -> None:
    for name in (".bashrc", ".bash_profile", ".profile", ".bash_env"):
        (tmp_path / name).write_text("echo PWNED")
    assert (await run("[[ a == a ]] && echo ok")).text == "ok\n[exit code 0]"


async def test_output_before_a_timeout_is_kept(run: Shell) -> None:
    outcome = await run("echo before; sleep 600", timeout_seconds=1)
    assert outcome.text == "before\n[ended after 1 s with all it had started]"
    assert outcome.metadata["timed_out"] is True


@pytest.mark.parametrize("seconds", [0, 601, -1])
async def test_the_timeout_argument_is_limited(run: Shell, seconds: int) -> None:
    with pytest.raises(ToolError, match="argument 'timeout_seconds'"):
        await run("true", timeout_seconds=seconds)


def test_the_tool_runner_waits_longer_than_the_command_may_take() -> None:
    allowed = shell.spec.parameters["properties"]["timeout_seconds"]["maximum"]
    assert shell.spec.timeout_seconds is not None
    assert shell.spec.timeout_seconds > allowed + 2


async def test_output_is_reported_while_the_command_runs(run: Shell) -> None:
    running = asyncio.create_task(run("echo ready; sleep 600"))
    await run.ready.wait()
    assert run.live == "ready\n"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_large_output_keeps_its_beginning_and_end(run: Shell) -> None:
    text = (await run("echo first; seq 1 400000; echo last")).text
    assert text.startswith("first\n1\n2\n")
    assert text.endswith("\n400000\nlast\n[exit code 0]")
    assert " characters left out …" in text
    assert len(text) < 30_100


async def test_invalid_utf8_output_is_replaced(run: Shell) -> None:
    assert (await run(r"printf 'a\xff\0b'")).text == "a\ufffdb\n[exit code 0]"


class Scripted:
    """A sandbox that prints the chunks it is given."""

    provider = "scripted"
    capabilities = SandboxCapabilities(isolated=True)

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        for chunk in self.chunks:
            on_output(chunk)
        return SandboxResult(0)


async def test_a_character_split_between_chunks_is_decoded(run: Shell, tmp_path: Path) -> None:
    run.box = tool_box(tmp_path, sandbox=Scripted(b"\xe4\xbd", b"\xa0\n"))
    outcome = await run("true")
    assert outcome.text == "你\n[exit code 0]"
    assert outcome.metadata["isolated"] is True
    assert run.live == "你\n"
