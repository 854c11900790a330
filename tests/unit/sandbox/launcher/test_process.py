"""The launcher process as used by Larkspur: inherited state, and recovery after a kill."""

import asyncio
import contextlib
import inspect
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import SandboxCommand, SandboxResult
from internal.sandbox.launcher import program as launcher_program
from internal.sandbox.launcher.command import LaunchedCommand
from internal.sandbox.launcher.process import Launcher
from internal.sandbox.native import NativeSandbox
from tests.support.processes import is_of_libffi
from tests.support.tools import native_sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[NativeSandbox]:
    with contextlib.closing(native_sandbox(tmp_path)) as opened:
        yield opened


class Run:
    """A command in a folder, and its output."""

    def __init__(self, folder: Path, script: str, seconds: float = 60.0) -> None:
        self.output = b""
        self.started = asyncio.Event()
        argv = ("bash", "-c", script)
        self._command = SandboxCommand(argv, str(folder), seconds, SessionId("session-1"))

    async def finish(self, sandbox: NativeSandbox) -> SandboxResult:
        return await sandbox.run(self._command, self._take)

    def _take(self, chunk: bytes) -> None:
        self.output += chunk
        self.started.set()


# The launcher is the parent of the parent of a command.
LAUNCHER = "launcher=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status)"


async def launcher_of(sandbox: NativeSandbox, folder: Path) -> int:
    run = Run(folder, f"{LAUNCHER}; echo $launcher")
    await run.finish(sandbox)
    return int(run.output)


async def test_one_process_starts_all_commands(sandbox: NativeSandbox, tmp_path: Path) -> None:
    first = await launcher_of(sandbox, tmp_path)
    async with asyncio.TaskGroup() as tasks:
        found = [tasks.create_task(launcher_of(sandbox, tmp_path)) for _ in range(40)]
    assert {task.result() for task in found} == {first}


async def test_it_inherits_no_variable_and_no_descriptor(
    sandbox: NativeSandbox, tmp_path: Path
) -> None:
    secret = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(secret, True)
    try:
        launcher = Path("/proc", str(await launcher_of(sandbox, tmp_path)))
    finally:
        os.close(secret)
    assert b"=" not in launcher.joinpath("environ").read_bytes().replace(b"LC_CTYPE=", b"")
    given = (each for each in launcher.joinpath("fd").iterdir() if not is_of_libffi(each))
    opened = sorted(str(each.readlink()) for each in given)
    assert opened[:3] == ["/dev/null"] * 3
    assert [each.partition(":")[0] for each in opened[3:]] == ["socket"]
    assert len(list(launcher.joinpath("task").iterdir())) == 1


async def test_a_supervisor_holds_no_descriptor_of_another_command(
    sandbox: NativeSandbox, tmp_path: Path
) -> None:
    other = Run(tmp_path, "echo; sleep 600")
    running = asyncio.create_task(other.finish(sandbox))
    await other.started.wait()
    run = Run(tmp_path, "readlink /proc/$PPID/fd/* | grep -v /libffi.so | cut -d: -f1")
    await run.finish(sandbox)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    counts = Counter(run.output.decode().split())
    assert counts.pop("pipe") <= 4  # for signals, and briefly for the start
    assert counts == {"/dev/null": 3, "socket": 1}  # its link


async def test_a_launcher_that_was_killed_is_replaced(
    sandbox: NativeSandbox, tmp_path: Path
) -> None:
    running = Run(tmp_path, f"{LAUNCHER}; kill -9 $launcher; echo done")
    assert await running.finish(sandbox) == SandboxResult(0)  # only others need it
    assert running.output == b"done\n"
    assert await Run(tmp_path, "exit 4").finish(sandbox) == SandboxResult(4)


def command(launcher: Launcher, script: str, output: bytearray) -> LaunchedCommand:
    argv = ("/bin/sh", "-c", script)
    given = SandboxCommand(argv, "/", 60.0, SessionId("session-1"))
    return LaunchedCommand(
        launcher, given, argv, {"PATH": "/usr/bin:/bin"}, on_output=output.extend
    )


async def test_what_a_killed_launcher_had_not_started_runs_once() -> None:
    outputs = [bytearray() for _ in range(16)]
    with contextlib.closing(Launcher()) as launcher:
        await command(launcher, f"{LAUNCHER}; echo $launcher", outputs[0]).run()
        stopped = int(outputs[0])
        os.kill(stopped, signal.SIGSTOP)
        os.waitid(  # noqa: ASYNC222  # it stops at once
            os.P_PID, stopped, os.WSTOPPED | os.WNOWAIT
        )
        outputs[0].clear()
        runs = [command(launcher, "echo ran", output).run() for output in outputs]
        tasks = [asyncio.create_task(run) for run in runs]
        for _ in iter(launcher.starting.locked, True):
            await asyncio.sleep(0)  # until all have been handed over
        os.kill(stopped, signal.SIGKILL)
        for task in tasks:
            assert await task == SandboxResult(0)
        assert outputs == [b"ran\n"] * len(outputs)


async def test_a_launcher_that_dies_again_and_again_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "dies.py"
    program.write_text("import socket, sys; socket.socket(fileno=int(sys.argv[1])).recv(1)")
    with (
        contextlib.closing(Launcher(program)) as launcher,
        pytest.raises(ToolError, match=r"was not started: .* killed twice\. Call the tool"),
    ):
        await command(launcher, "true", bytearray()).run()


async def test_a_launcher_that_does_not_answer_is_replaced(tmp_path: Path) -> None:
    program = tmp_path / "waits.py"
    program.write_text("import signal; signal.pause()")
    with contextlib.closing(Launcher(program, timeout_seconds=0.5)) as launcher:
        with pytest.raises(ToolError, match=r"did not answer within 0\.5 s.*call the tool again"):
            await command(launcher, "true", bytearray()).run()
        program.write_text(inspect.getsource(launcher_program))
        launcher.timeout_seconds = 30.0
        assert await command(launcher, "exit 4", bytearray()).run() == SandboxResult(4)
