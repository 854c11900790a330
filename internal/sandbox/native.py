"""The sandbox that is none: commands run as the user who runs Larkspur, and are ended in full."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from internal.agent.domain.errors import ToolError
from internal.agent.ports.sandbox import SandboxCommand, SandboxResult

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))
_ENDING_SECONDS = 2.0
_LAST_OUTPUT_SECONDS = 0.5
_CHUNK = 65_536

_GIT = {
    # HOME is the workspace: a cloned repository would bring a global configuration of its own
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": "/dev/null",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}


class NativeSandbox:
    """Runs commands directly on this machine. Fills `Sandbox`; nothing is isolated.

    A command gets a session and group of its own, standard input from /dev/null unless bytes are
    given, and an environment of PATH, LANG, TZ, TERM, HOME (its folder) and switches that keep
    git from running programs that a repository names. Whatever it started is ended with it,
    within two seconds; what that means and where it stops is told in `launcher.py`.

    Args:
        path: where programs are found; relative and empty entries are left out, because they
            would let the workspace replace programs.
        lang: the locale of the commands.
        timezone: the TZ of the commands, such as Asia/Shanghai; empty for the machine's.
    """

    provider: str = "native"
    isolated: bool = False

    def __init__(
        self, *, path: str = DEFAULT_PATH, lang: str = "C.UTF-8", timezone: str = ""
    ) -> None:
        self._path = os.pathsep.join(
            entry for entry in path.split(os.pathsep) if entry.startswith("/")
        )
        self._environment = {"PATH": self._path, "LANG": lang, "TERM": "dumb", **_GIT}
        if timezone:
            self._environment["TZ"] = timezone

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        """Run a command; see the port. If `on_output` raises, the command is ended and it passes.

        Raises:
            ToolError: the program cannot be started.
        """
        life = _Life(command, self._argv(command), self._environment, on_output)
        leading = asyncio.create_task(life.lead())
        try:
            return await asyncio.shield(leading)
        except asyncio.CancelledError:
            life.hang_up()
            while not leading.done():  # a second cancel must not leave the processes behind
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({leading})
            if not leading.cancelled():
                leading.exception()  # taken, so that nobody reports it as forgotten
            raise

    def _argv(self, command: SandboxCommand) -> list[bytes]:
        """Return the arguments as bytes, the program by its full path."""
        program = command.argv[0]
        found = shutil.which(program, path=self._path)
        if found is None:
            raise ToolError(f"there is no program {program!r} in {self._path}")
        try:
            argv = [os.fsencode(part) for part in (found, *command.argv[1:])]
        except UnicodeEncodeError as error:
            raise ToolError(f"the command is not valid text: {error.reason}") from error
        if any(b"\0" in part for part in argv):
            raise ToolError("the command contains a NUL character")
        return argv


class _Life:
    """One command from its start to the end of its last process."""

    def __init__(
        self,
        command: SandboxCommand,
        argv: list[bytes],
        environment: Mapping[str, str],
        on_output: Callable[[bytes], None],
    ) -> None:
        self._command = command
        self._argv = argv
        self._environment = {**environment, "HOME": command.cwd}
        self._on_output = on_output
        self._link, self._theirs = socket.socketpair()
        self._link.setblocking(False)
        self._said = b""

    def hang_up(self) -> None:
        """Have the launcher end everything. May be called at any time, more than once."""
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)

    async def lead(self) -> SandboxResult:
        """Start the command, follow it, end it."""
        with self._link:  # closed whatever happens: the launcher takes that for hang_up
            process, transport, reading = await self._launch()
            try:
                timed_out = await self._follow()
                await self._end(process)
                await asyncio.wait({reading}, timeout=_LAST_OUTPUT_SECONDS)
            finally:
                reading.cancel()
                transport.close()
            if not reading.cancelled() and reading.done():
                reading.result()
            return self._finished(timed_out=timed_out)

    async def _launch(
        self,
    ) -> tuple[asyncio.subprocess.Process, asyncio.BaseTransport, asyncio.Task[None]]:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_CHUNK)
        out, into = os.pipe()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(out, "rb", buffering=0)
        )
        try:
            with self._theirs, os.fdopen(into, "wb", buffering=0) as output, self._stdin() as given:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", _LAUNCHER, str(self._theirs.fileno())),
                    *self._argv,
                    stdin=given,
                    stdout=output,
                    stderr=output,
                    cwd=self._command.cwd,
                    env=self._environment,
                    pass_fds=(self._theirs.fileno(),),
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            transport.close()
            reason = error.strerror if isinstance(error, OSError) else error
            raise ToolError(f"{self._name} cannot be started: {reason}") from error
        return process, transport, asyncio.create_task(self._read(reader))

    def _stdin(self) -> IO[bytes]:
        if not self._command.stdin:
            return open(os.devnull, "rb")  # noqa: PTH123  # a device, and the caller closes it
        given = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
        given.write(self._command.stdin)  # a file, not a pipe: nobody has to feed it
        given.seek(0)
        return given

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while chunk := await reader.read(_CHUNK):
                self._on_output(chunk)
        except Exception:
            self.hang_up()
            raise

    async def _listen(self) -> None:
        """Hear what the launcher says, until it is gone."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):
            while chunk := await loop.sock_recv(self._link, 64):
                self._said += chunk

    async def _follow(self) -> bool:
        """Wait for the end of the command; return whether its time was over first."""
        try:
            async with asyncio.timeout(self._command.timeout_seconds):
                await self._listen()
        except TimeoutError:
            self.hang_up()
            return True
        return False

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Wait for the launcher to be gone, then for nothing of the group to be left."""
        try:
            async with asyncio.timeout(_ENDING_SECONDS):
                await self._listen()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()
        if b"exited" not in self._said and (group := self._word("started")) is not None:
            await _strike(group)  # somebody killed the launcher

    def _finished(self, *, timed_out: bool) -> SandboxResult:
        if (number := self._word("failed")) is not None:
            raise ToolError(f"{self._name} cannot be started: {os.strerror(number)}")
        code = self._word("exited")
        return SandboxResult(-signal.SIGKILL if code is None else code, timed_out)

    def _word(self, word: str) -> int | None:
        for line in self._said.decode("ascii").splitlines():
            if line.startswith(f"{word} "):
                return int(line.split()[1])
        return None

    @property
    def _name(self) -> str:
        return Path(os.fsdecode(self._argv[0])).name


async def _strike(group: int) -> None:
    """Kill a group and wait until it is gone, as far as its new parent buries it."""
    with contextlib.suppress(OSError):
        for _ in range(50):
            os.killpg(group, signal.SIGKILL)
            await asyncio.sleep(0.01)
