"""The native sandbox with real processes, and that none of them is left."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import Sandbox, SandboxCommand, SandboxResult
from tests.support.native_sandbox import TREES, is_running
from tests.support.tools import native_sandbox

SESSION = SessionId("session-1")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Run:
    """A running command and its output. `ready` is set when the output contains `ready`."""

    def __init__(
        self, folder: Path, script: str, seconds: float = 60.0, stdin: bytes = b""
    ) -> None:
        self.output = b""
        self.ready = asyncio.Event()
        self.folder = folder
        self.command = SandboxCommand(("bash", "-c", script), str(folder), seconds, SESSION, stdin)

    def take(self, chunk: bytes) -> None:
        self.output += chunk
        if b"ready" in self.output:
            self.ready.set()

    async def finish(self, sandbox: Sandbox | None = None) -> SandboxResult:
        return await (sandbox or native_sandbox(self.folder)).run(self.command, self.take)

    async def cancelled(self) -> None:
        running = asyncio.create_task(self.finish())
        await self.ready.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    def pids(self) -> list[int]:
        return [int(word) for word in self.output.split() if word.isdigit()]


async def test_output_is_joined_and_in_order(tmp_path: Path) -> None:
    run = Run(tmp_path, "echo out; echo err >&2; echo out again; exit 3")
    assert await run.finish() == SandboxResult(3)
    assert run.output == b"out\nerr\nout again\n"


async def test_a_signal_is_a_negative_exit_code(tmp_path: Path) -> None:
    assert await Run(tmp_path, "kill -SEGV $$").finish() == SandboxResult(-signal.SIGSEGV)


async def test_provider_is_not_isolated(tmp_path: Path) -> None:
    sandbox: Sandbox = native_sandbox(tmp_path)
    assert (sandbox.provider, sandbox.capabilities.isolated) == ("native", False)


async def test_environment_of_a_command(tmp_path: Path) -> None:
    run = Run(tmp_path, "env -0")
    sandbox = native_sandbox(
        tmp_path, path=":bin:/usr/bin:/bin", lang="C", timezone="Asia/Shanghai"
    )
    await run.finish(sandbox)
    pairs = dict(line.split("=", 1) for line in run.output.decode().split("\0") if line)
    home = f"{tmp_path}-homes/{SESSION}"
    git = {name for name in pairs if name.startswith("GIT_")}
    assert {name: pairs[name] for name in pairs.keys() - git - {"_", "SHLVL", "PWD"}} == {
        "PATH": "/usr/bin:/bin",  # a relative entry would let the workspace replace programs
        "LANG": "C",
        "TZ": "Asia/Shanghai",
        "TERM": "dumb",
        "HOME": home,
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_RUNTIME_DIR": home,
        "PYTHONNOUSERSITE": "1",
    }
    assert pairs["GIT_CONFIG_GLOBAL"] == "/dev/null"


async def test_git_runs_no_program_of_a_repository(tmp_path: Path) -> None:
    config = "[core]\n fsmonitor = touch from-home; echo\n"
    run = Run(
        tmp_path,
        f"echo '{config}' > .gitconfig; git init -q r && cd r && "
        "git config core.fsmonitor 'touch ../from-repository; echo' && "
        "printf '#!/bin/sh\ntouch ../from-hook' > .git/hooks/pre-commit && "
        "chmod +x .git/hooks/pre-commit && touch f && git add f && "
        "git -c user.name=n -c user.email=e commit -qm m && git status --short",
    )
    assert await run.finish() == SandboxResult(0), run.output
    assert names(tmp_path) == [".gitconfig", "r"]


async def test_standard_input(tmp_path: Path) -> None:
    empty = Run(tmp_path, "wc -c")
    given = Run(tmp_path, "wc -c", stdin=b"x" * 300_000)
    await empty.finish()
    await given.finish()
    assert (empty.output.strip(), given.output.strip()) == (b"0", b"300000")


async def test_a_command_has_no_terminal(tmp_path: Path) -> None:
    assert await Run(tmp_path, "exec 2>&-; : < /dev/tty").finish() != SandboxResult(0)


async def test_signals_have_their_default_action(tmp_path: Path) -> None:
    run = Run(tmp_path, 'yes | head -n 1; echo "${PIPESTATUS[0]}"')
    await run.finish()
    assert run.output == b"y\n141\n"  # 128 + SIGPIPE


@pytest.mark.parametrize("script", TREES.values(), ids=TREES)
@pytest.mark.first_rows(2)
async def test_cancel_leaves_no_process(tmp_path: Path, script: str) -> None:
    run = Run(tmp_path, script)
    async with asyncio.timeout(20):
        await run.cancelled()
    assert run.pids()
    assert [pid for pid in run.pids() if is_running(pid)] == []


@pytest.mark.parametrize("script", TREES.values(), ids=TREES)
@pytest.mark.first_rows(3)
async def test_timeout_leaves_no_process(tmp_path: Path, script: str) -> None:
    run = Run(tmp_path, script, seconds=1.0)
    finished = await run.finish()
    assert finished.timed_out
    assert finished.exit_code in {-signal.SIGTERM, -signal.SIGKILL}
    assert run.pids()
    assert [pid for pid in run.pids() if is_running(pid)] == []


async def test_background_processes_end_with_the_command(tmp_path: Path) -> None:
    run = Run(tmp_path, "sleep 600 & echo $!; setsid sleep 600 & echo $!; sleep 0.1; exit 4")
    assert await run.finish() == SandboxResult(4)
    assert len(run.pids()) == 2
    assert [pid for pid in run.pids() if is_running(pid)] == []


async def test_a_second_cancel_has_no_effect(tmp_path: Path) -> None:
    run = Run(tmp_path, TREES["a stubborn one"])
    running = asyncio.create_task(run.finish())
    await run.ready.wait()
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0)  # let it take the cancel
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [pid for pid in run.pids() if is_running(pid)] == []


async def test_cancel_before_the_start_leaves_no_process(tmp_path: Path) -> None:
    run = Run(tmp_path, "echo started > mark; sleep 600")
    running = asyncio.create_task(run.finish())
    await asyncio.sleep(0)  # it has begun, the program has not
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert run.output == b""


def test_commands_end_when_larkspur_is_killed(tmp_path: Path) -> None:
    """After `kill -9`, the commands of Larkspur do not continue on their own."""
    script = (
        "import asyncio, sys\n"
        "from internal.agent.ports.sandbox import SandboxCommand\n"
        "from pathlib import Path\n"
        "from tests.support.tools import native_sandbox\n"
        "script = 'setsid sleep 600 & echo $! $$; wait'\n"
        "command = SandboxCommand(('bash', '-c', script), sys.argv[1], 99, 'session-1')\n"
        "def show(chunk): sys.stdout.buffer.write(chunk); sys.stdout.flush()\n"
        "asyncio.run(native_sandbox(Path(sys.argv[1])).run(command, show))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        pids = [int(word) for word in program.stdout.readline().split()]
        assert len(pids) == 2
        ends = [os.pidfd_open(pid) for pid in pids]
        program.kill()
    for end in ends:  # readable once its process is gone
        assert select.select([end], [], [], 10)[0] == [end]
        os.close(end)


async def test_the_group_ends_when_the_launcher_is_killed(tmp_path: Path) -> None:
    run = Run(tmp_path, "sleep 600 & echo $! $$; kill -9 $PPID; sleep 600")
    assert await run.finish() == SandboxResult(-signal.SIGKILL)
    assert [pid for pid in run.pids() if is_running(pid)] == []


@pytest.mark.slow
async def test_a_stopped_launcher_is_killed(tmp_path: Path) -> None:
    run = Run(tmp_path, "echo $$; kill -STOP $PPID; sleep 600", seconds=0.5)
    assert await run.finish() == SandboxResult(-signal.SIGKILL, timed_out=True)
    assert [pid for pid in run.pids() if is_running(pid)] == []


async def test_a_command_that_closes_its_output_continues(tmp_path: Path) -> None:
    run = Run(tmp_path, "exec >&- 2>&-; sleep 0.2; echo done > mark; exit 5")
    assert await run.finish() == SandboxResult(5)
    assert (tmp_path / "mark").exists()


async def test_large_output_is_delivered_in_chunks(tmp_path: Path) -> None:
    sizes: list[int] = []
    command = SandboxCommand(("head", "-c", "300000000", "/dev/zero"), str(tmp_path), 60.0, SESSION)
    assert await native_sandbox(tmp_path).run(
        command, lambda chunk: sizes.append(len(chunk))
    ) == SandboxResult(0)
    assert sum(sizes) == 300_000_000
    assert max(sizes) <= 65_536


async def test_an_exception_of_the_listener_ends_the_command(tmp_path: Path) -> None:
    def refuse(chunk: bytes) -> None:
        run.take(chunk)
        raise ValueError("enough")

    run = Run(tmp_path, "echo $$; sleep 600")
    with pytest.raises(ValueError, match="enough"):
        await native_sandbox(tmp_path).run(run.command, refuse)
    assert [pid for pid in run.pids() if is_running(pid)] == []


def text_file(folder: Path) -> str:
    path = folder / "notes"
    path.write_text("no program")
    path.chmod(0o755)
    return str(path)


IMPOSSIBLE: dict[str, tuple[Callable[[Path], tuple[str, ...]], str]] = {
    "missing": (lambda _: ("no-such-program",), "there is no program 'no-such-program'"),
    "no program": (lambda folder: (text_file(folder),), "notes cannot be started: Exec format"),
    "NUL": (lambda _: ("echo", "a\0b"), "NUL"),
    "half a character": (lambda _: ("echo", "\ud800"), "not valid text"),
    "too long": (lambda _: ("echo", "x" * 3_000_000), "Argument list too long"),
}


@pytest.mark.parametrize(("argv", "says"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
async def test_a_command_that_cannot_start(
    tmp_path: Path, argv: Callable[[Path], tuple[str, ...]], says: str
) -> None:
    with pytest.raises(ToolError, match=says):
        await native_sandbox(tmp_path).run(
            SandboxCommand(argv(tmp_path), str(tmp_path), 9.0, SESSION), lambda _: None
        )


async def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot be started: No such file or directory"):
        await Run(tmp_path / "gone", "true").finish()


async def test_concurrent_commands_leave_no_file_descriptor(tmp_path: Path) -> None:
    await Run(tmp_path, "true").finish()
    before = len(names(Path("/proc/self/fd")))
    async with asyncio.TaskGroup() as tasks:
        runs = [Run(tmp_path, f"exit {number}") for number in range(8)]
        finished = [tasks.create_task(run.finish()) for run in runs]
    assert [task.result().exit_code for task in finished] == list(range(8))
    assert len(names(Path("/proc/self/fd"))) <= before


async def test_standard_error_can_be_apart(tmp_path: Path) -> None:
    run = Run(tmp_path, "echo out; echo error >&2")
    with (tmp_path / "errors").open("wb") as errors:
        run.command = structs.replace(run.command, stderr=errors.fileno())
        await run.finish()
    assert run.output == b"out\n"
    assert (tmp_path / "errors").read_bytes() == b"error\n"
