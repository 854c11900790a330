"""The sandbox without isolation: commands run as the user of Larkspur."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from internal.agent.app.background_task import wait_for_completion
from internal.agent.ports.sandbox import SandboxCapabilities, SandboxCommand, SandboxResult
from internal.sandbox.command_io import OutputPipe, create_home, open_stdin, start_error
from internal.sandbox.environment import CommandEnvironment
from internal.sandbox.workspaces import SessionFolders

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))
_KILL_POLLS, _KILL_POLL_SECONDS = 1_000, 0.01
_LAUNCHER_TIMEOUT_SECONDS = 2.0


class NativeSandbox:
    """Runs commands on this machine without isolation. Implements `Sandbox`.

    A command gets its own session and process group, standard input from /dev/null unless bytes are
    given, and the variables of `CommandEnvironment`. All processes that it started are ended with
    it, within two seconds; see `launcher.py` for the limits.

    Args:
        homes: the private folders of the sessions, outside of every workspace.
        environment: finds programs and makes the environment of commands.
    """

    provider: str = "native"

    def __init__(
        self, homes: SessionFolders, environment: CommandEnvironment | None = None
    ) -> None:
        self._homes = homes
        self._environment = environment or CommandEnvironment()
        self.capabilities = SandboxCapabilities(runtimes=self._environment.runtimes())

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        """Run a command; see the port. An exception of `on_output` ends the command and is raised.

        Raises:
            ToolError: the program cannot be started, or the home folder cannot be created.
        """
        argv = self._environment.encode(command.argv)
        home = await create_home(self._homes, command.session_id)
        variables = self._environment.variables(home, command.environment)
        execution = LaunchedCommand(command, argv, variables, on_output)
        return await wait_for_completion(execution.run(), execution.request_end)


class LaunchedCommand:
    """One command of `launcher.py`, from its start to the end of its last process.

    Args:
        command: what was asked for.
        argv: the full path of the program, and its arguments.
        environment: the variables of the command.
        on_output: gets the output.
        confinement: the descriptors with which the command confines itself; see `launcher.py`.
    """

    def __init__(
        self,
        command: SandboxCommand,
        argv: Sequence[str | bytes],
        environment: Mapping[str, str],
        on_output: Callable[[bytes], None],
        *,
        confinement: Sequence[int] = (),
    ) -> None:
        self._confinement = confinement
        self._command = command
        self._argv = argv
        self._environment = environment
        self._on_output = on_output
        self._link, self._launcher_link = socket.socketpair()
        self._link.setblocking(False)
        self._reports = b""

    def request_end(self) -> None:
        """Tell the launcher to end all processes. May be called at any time and repeatedly."""
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)

    async def run(self) -> SandboxResult:
        """Start the command, wait for it, end its processes."""
        with self._link, self._launcher_link:  # closing the link has the effect of request_end
            async with OutputPipe(self._on_output, self.request_end) as output:
                process = await self._start_launcher(output.writer)
                timed_out = await self._wait_for_exit()
                await self._wait_for_launcher(process)
                await output.drain()
            return self._result(timed_out=timed_out)

    async def _start_launcher(self, output: IO[bytes]) -> asyncio.subprocess.Process:
        descriptors = (self._launcher_link.fileno(), *self._confinement)
        try:
            with self._launcher_link, output, open_stdin(self._command.stdin) as stdin:
                return await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", _LAUNCHER, ",".join(map(str, descriptors))),
                    *self._argv,
                    stdin=stdin,
                    stdout=output,
                    stderr=output if self._command.stderr is None else self._command.stderr,
                    cwd=self._command.cwd,
                    env=self._environment,
                    pass_fds=descriptors,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            raise start_error(self._command.argv[0], error) from error

    async def _read_reports(self) -> None:
        """Collect the reports of the launcher until it closes its end of the link."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):
            while chunk := await loop.sock_recv(self._link, 64):
                self._reports += chunk

    async def _wait_for_exit(self) -> bool:
        """Wait until the command has ended. Return whether it timed out."""
        try:
            async with asyncio.timeout(self._command.timeout_seconds):
                await self._read_reports()
        except TimeoutError:
            self.request_end()
            return True
        return False

    async def _wait_for_launcher(self, process: asyncio.subprocess.Process) -> None:
        """Wait until the launcher has ended, then until no process of the group is left."""
        try:
            async with asyncio.timeout(_LAUNCHER_TIMEOUT_SECONDS):
                await self._read_reports()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()
        group = self._reported("started")
        ended = b"exited" in self._reports or b"failed" in self._reports
        if group is not None and not ended:
            await _kill_group(group)  # the launcher was killed before it could do so

    def _result(self, *, timed_out: bool) -> SandboxResult:
        if (number := self._reported("failed")) is not None:
            raise start_error(self._command.argv[0], OSError(number, os.strerror(number)))
        code = self._reported("exited")
        return SandboxResult(-signal.SIGKILL if code is None else code, timed_out)

    def _reported(self, name: str) -> int | None:
        for line in self._reports.decode("ascii").splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
        return None


async def _kill_group(group: int) -> None:
    """Kill a process group and wait until none of its processes runs any more."""
    with contextlib.suppress(OSError):
        for _ in range(_KILL_POLLS):
            os.killpg(group, signal.SIGKILL)
            if not await asyncio.to_thread(_is_running, group):
                return  # what is left are zombies that their new parent has not reaped
            await asyncio.sleep(_KILL_POLL_SECONDS)


def _is_running(group: int) -> bool:
    for process in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, number, *_ = process.read_text().rpartition(")")[2].split()
            if int(number) == group and state not in {"Z", "X"}:
                return True
    return False
