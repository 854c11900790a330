"""The sandbox without isolation: commands run as the user of Larkspur."""

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

from internal.agent.app.background_task import wait_for_completion
from internal.agent.domain.errors import StoreUnavailable, ToolError
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.ports.sandbox import SandboxCommand, SandboxResult
from internal.sandbox.workspaces import SessionFolders

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))
_LAUNCHER_TIMEOUT_SECONDS = 2.0
_OUTPUT_TIMEOUT_SECONDS = 0.5
_CHUNK_BYTES = 65_536

_XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}

# The configuration of a repository names programs; git uses the values given here instead of its.
_GIT_CONFIG = {
    "safe.bareRepository": "explicit",  # a bare repository can be checked in like any folder
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.alternateRefsCommand": "true",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "push.gpgSign": "false",
    "log.showSignature": "false",
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.x509.program": "gpgsm",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.ssh.defaultKeyCommand": "true",
    "credential.helper": "",  # ends the list of helpers
    "interactive.diffFilter": "cat",
    "protocol.ext.allow": "never",
}
_GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_COUNT": str(len(_GIT_CONFIG)),
    **{f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(_GIT_CONFIG)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_GIT_CONFIG.values())},
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",  # git takes the text as it is and starts nothing
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_SSH_COMMAND": "ssh",
    "GIT_PROXY_COMMAND": "",
    "GIT_ASKPASS": "",
    "GIT_TERMINAL_PROMPT": "0",
}


class NativeSandbox:
    """Runs commands on this machine without isolation. Implements `Sandbox`.

    A command gets its own session and process group, standard input from /dev/null unless bytes are
    given, and an environment of PATH, LANG, TZ, TERM, HOME and XDG_* (the private folder of the
    session) and variables that keep Python and git from running programs of the workspace. All
    processes that it started are ended with it, within two seconds; see `launcher.py` for the
    limits.

    Args:
        homes: the private folders of the sessions, outside of every workspace.
        path: where programs are looked up. Relative and empty entries are removed, because a
            workspace could replace programs with them.
        lang: the locale of the commands.
        timezone: the TZ of the commands, such as Asia/Shanghai; "" for the machine's.
    """

    provider: str = "native"
    isolated: bool = False

    def __init__(
        self,
        homes: SessionFolders,
        *,
        path: str = DEFAULT_PATH,
        lang: str = "C.UTF-8",
        timezone: str = "",
    ) -> None:
        self._homes = homes
        self._path = os.pathsep.join(
            entry for entry in path.split(os.pathsep) if entry.startswith("/")
        )
        self._environment = {
            "PATH": self._path,
            "LANG": lang,
            "TERM": "dumb",
            "PYTHONNOUSERSITE": "1",
            **_GIT,
        }
        if timezone:
            self._environment["TZ"] = timezone

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        """Run a command; see the port. An exception of `on_output` ends the command and is raised.

        Raises:
            ToolError: the program cannot be started, or the home folder cannot be created.
        """
        argv, environment = self._argv(command), await self._environment_of(command)
        execution = _Execution(command, argv, environment, on_output)
        return await wait_for_completion(execution.run(), execution.request_end)

    async def _environment_of(self, command: SandboxCommand) -> dict[str, str]:
        try:
            home = await asyncio.to_thread(self._homes.create, command.session_id)
        except StoreUnavailable as error:
            raise ToolError(str(error)) from error
        folders = {name: f"{home}/{folder}" for name, folder in _XDG.items()}
        own = {**command.environment, "HOME": home, "XDG_RUNTIME_DIR": home}
        return {**self._environment, **own, **folders}

    def _argv(self, command: SandboxCommand) -> list[bytes]:
        """Return the arguments as bytes, with the full path of the program."""
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


class _Execution:
    """One command, from its start to the end of its last process."""

    def __init__(
        self,
        command: SandboxCommand,
        argv: list[bytes],
        environment: Mapping[str, str],
        on_output: Callable[[bytes], None],
    ) -> None:
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
            process, transport, reading = await self._launch()
            try:
                timed_out = await self._wait_for_exit()
                await self._wait_for_launcher(process)
                await asyncio.wait({reading}, timeout=_OUTPUT_TIMEOUT_SECONDS)
            finally:
                reading.cancel()
                transport.close()
            if not reading.cancelled() and reading.done():
                reading.result()
            return self._result(timed_out=timed_out)

    async def _launch(
        self,
    ) -> tuple[asyncio.subprocess.Process, asyncio.BaseTransport, asyncio.Task[None]]:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_CHUNK_BYTES)
        output_reader, output_writer = os.pipe()
        with os.fdopen(output_writer, "wb", buffering=0) as output:
            transport, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader),
                os.fdopen(output_reader, "rb", buffering=0),
            )
            process = await self._start_launcher(output, transport)
        return process, transport, asyncio.create_task(self._read(reader))

    async def _start_launcher(
        self, output: IO[bytes], transport: asyncio.BaseTransport
    ) -> asyncio.subprocess.Process:
        try:
            with self._launcher_link, self._open_stdin() as stdin:
                return await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", _LAUNCHER, str(self._launcher_link.fileno())),
                    *self._argv,
                    stdin=stdin,
                    stdout=output,
                    stderr=output,
                    cwd=self._command.cwd,
                    env=self._environment,
                    pass_fds=(self._launcher_link.fileno(),),
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            transport.close()
            reason = describe_system_error(error) if isinstance(error, OSError) else error
            raise ToolError(f"{self._program} cannot be started: {reason}") from error

    def _open_stdin(self) -> IO[bytes]:
        if not self._command.stdin:
            return open(os.devnull, "rb")  # noqa: PTH123  # a device; the caller closes it
        file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
        file.write(self._command.stdin)  # a file, not a pipe: nothing has to write to it meanwhile
        file.seek(0)
        return file

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while chunk := await reader.read(_CHUNK_BYTES):
                self._on_output(chunk)
        except Exception:
            self.request_end()
            raise

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
        if b"exited" not in self._reports and group is not None:
            await _kill_group(group)  # the launcher was killed before it could do so

    def _result(self, *, timed_out: bool) -> SandboxResult:
        if (number := self._reported("failed")) is not None:
            raise ToolError(f"{self._program} cannot be started: {os.strerror(number)}")
        code = self._reported("exited")
        return SandboxResult(-signal.SIGKILL if code is None else code, timed_out)

    def _reported(self, name: str) -> int | None:
        for line in self._reports.decode("ascii").splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
        return None

    @property
    def _program(self) -> str:
        return Path(os.fsdecode(self._argv[0])).name


async def _kill_group(group: int) -> None:
    """Kill a process group and wait until it is gone, as far as its new parent reaps it."""
    with contextlib.suppress(OSError):
        for _ in range(50):
            os.killpg(group, signal.SIGKILL)
            await asyncio.sleep(0.01)
