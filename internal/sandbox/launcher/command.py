"""One command of the launcher process."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from internal.agent.domain.errors import ToolError
from internal.agent.ports.sandbox import SandboxCommand, SandboxResult
from internal.output_pipe.pipe import OutputPipe
from internal.sandbox.command_io import open_stdin, start_error
from internal.sandbox.launcher.process import Launcher

_KILL_POLLS, _KILL_POLL_SECONDS = 1_000, 0.01
_SUPERVISOR_TIMEOUT_SECONDS = 2.0
_ATTEMPTS = 2
_MAX_REPORT_BYTES = 64
_LOST = (
    "{program} was not started: the process of Larkspur that starts commands was killed twice."
    " Call the tool again"
)
_STUCK = (
    "{program} was not started: the process of Larkspur that starts commands did not answer within"
    " {seconds:g} s. It is started again for the next command; call the tool again"
)


class LaunchedCommand:
    """One command, from its start to the end of its last process.

    Args:
        launcher: starts it.
        command: the requested command.
        argv: the full path of the program, and its arguments.
        environment: the variables of the command.
        on_output: gets the output.
        confinement: the descriptors with which the command confines itself; see `program`.
    """

    def __init__(
        self,
        launcher: Launcher,
        command: SandboxCommand,
        argv: Sequence[str | bytes],
        environment: Mapping[str, str],
        *,
        on_output: Callable[[bytes], None],
        confinement: Sequence[int] = (),
    ) -> None:
        self._launcher = launcher
        self._command = command
        self._argv = argv
        self._environment = environment
        self._on_output = on_output
        self._confinement = confinement
        self._link: socket.socket | None = None
        self._reports = b""
        self._ending = False

    def request_end(self) -> None:
        """Tell the supervisor to end all processes. May be called at any time and repeatedly."""
        self._ending = True
        if self._link is not None:
            with contextlib.suppress(OSError):
                self._link.shutdown(socket.SHUT_WR)

    async def run(self) -> SandboxResult:
        """Start the command, wait for it, end its processes.

        Raises:
            ToolError: it cannot be started.
        """
        async with OutputPipe(self._on_output, self.request_end) as output:
            try:
                await self._start(output.writer)
                timed_out = await self._wait_for_exit()
                await self._wait_for_supervisor()
            finally:
                if self._link is not None:
                    self._link.close()  # has the effect of request_end
            await output.drain()
        return self._result(timed_out=timed_out)

    async def _start(self, output: IO[bytes]) -> None:
        """Hand the command over, and wait for its first report.

        Raises:
            ToolError: it cannot be started.
        """
        with output:
            for _ in range(_ATTEMPTS):
                async with self._launcher.starting:
                    await self._attempt(output)
                if self._reports or self._ending:
                    return
        raise ToolError(_LOST.format(program=self._command.argv[0]))

    async def _attempt(self, output: IO[bytes]) -> None:
        """Hand the command over. There is no report if the launcher was killed before it took it.

        Raises:
            ToolError: it cannot be started.
        """
        if self._link is not None:
            self._link.close()
        self._link, other = socket.socketpair()
        self._link.setblocking(False)
        try:
            request = self._request()
            with other, open_stdin(self._command.stdin) as stdin:
                error = output.fileno() if self._command.stderr is None else self._command.stderr
                streams = (stdin.fileno(), output.fileno(), error)
                self._launcher.launch((other.fileno(), *streams, *self._confinement))
        except (OSError, ValueError) as error:
            raise start_error(self._command.argv[0], error) from error
        try:
            async with asyncio.timeout(self._launcher.timeout_seconds):
                with contextlib.suppress(ConnectionError):
                    await asyncio.get_running_loop().sock_sendall(self._link, request)
                await self._read_report()
        except TimeoutError:
            self._launcher.close()
            seconds = self._launcher.timeout_seconds
            program = self._command.argv[0]
            raise ToolError(_STUCK.format(program=program, seconds=seconds)) from None

    def _request(self) -> bytes:
        """Return the request for the supervisor; see `program.read_request`.

        Raises:
            ValueError: a part of it contains a NUL character.
        """
        variables = (f"{name}={value}" for name, value in self._environment.items())
        parts = [os.fsencode(each) for each in (self._command.cwd, *self._argv, *variables)]
        if any(b"\0" in each for each in parts):
            raise ValueError("the command contains a NUL character")
        text = b"\0".join(parts)
        return b"".join(n.to_bytes(8, "little") for n in (len(text), len(self._argv))) + text

    async def _read_report(self) -> bool:
        """Collect a report. Return False when the supervisor has closed its end of the link."""
        if self._link is None:
            return False
        try:
            chunk = await asyncio.get_running_loop().sock_recv(self._link, _MAX_REPORT_BYTES)
        except ConnectionError:
            return False
        self._reports += chunk
        return bool(chunk)

    async def _wait_for_exit(self) -> bool:
        """Wait until the command has ended. Return whether it timed out."""
        try:
            async with asyncio.timeout(self._command.timeout_seconds):
                while await self._read_report():
                    pass
        except TimeoutError:
            self.request_end()
            return True
        return False

    async def _wait_for_supervisor(self) -> None:
        """Wait until the supervisor has ended, then until no process of the group is left."""
        group, supervisor = self._reported("started") or (None, None)
        try:
            async with asyncio.timeout(_SUPERVISOR_TIMEOUT_SECONDS):
                while await self._read_report():
                    pass
        except TimeoutError:  # its end of the link is open: it has not ended
            if supervisor is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(supervisor, signal.SIGKILL)
        ended = b"exited" in self._reports or b"failed" in self._reports
        if group is not None and not ended:
            await _kill_group(group)  # the supervisor was killed before it could do so

    def _result(self, *, timed_out: bool) -> SandboxResult:
        program = self._command.argv[0]
        if failed := self._reported("failed"):
            raise start_error(program, OSError(failed[0], os.strerror(failed[0])))
        exited = self._reported("exited")
        return SandboxResult(exited[0] if exited else -signal.SIGKILL, timed_out)

    def _reported(self, name: str) -> list[int] | None:
        """Return the numbers of a report, None without one."""
        for line in self._reports.decode("ascii").splitlines():
            word, *numbers = line.split()
            if word == name:
                return [int(each) for each in numbers]
        return None


async def _kill_group(group: int) -> None:
    """Kill a process group and wait until none of its processes runs any more."""
    with contextlib.suppress(OSError):
        for _ in range(_KILL_POLLS):
            os.killpg(group, signal.SIGKILL)
            if not await asyncio.to_thread(_is_running, group):
                return  # the remaining ones are zombies that their new parent has not reaped
            await asyncio.sleep(_KILL_POLL_SECONDS)


def _is_running(group: int) -> bool:
    for process in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, number, *_ = process.read_text().rpartition(")")[2].split()
            if int(number) == group and state not in {"Z", "X"}:
                return True
    return False
