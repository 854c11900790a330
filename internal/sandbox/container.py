"""The sandbox of a container engine: each command runs in a new container of docker or podman.

For machines without bubblewrap, such as macOS. A container has no network; its programs come from
its image.
"""

import asyncio
import contextlib
import csv
import io
import itertools
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path

from internal.agent.app.background_task import wait_for_completion
from internal.agent.domain.errors import SandboxUnavailable, ToolError
from internal.agent.domain.text import truncate
from internal.agent.ports.sandbox import (
    Resource,
    SandboxCapabilities,
    SandboxCommand,
    SandboxResult,
)
from internal.open_files.paths import resolve_links
from internal.output_pipe.pipe import OutputPipe
from internal.sandbox.command_io import create_home, open_stdin, start_error
from internal.sandbox.environment import CommandEnvironment
from internal.sandbox.limits.resource_limits import ResourceLimits
from internal.sandbox.mounts import Mounts
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.workspaces import SessionFolders

_NAME = re.compile(r"larkspur-(?P<pid>[0-9]+)-[0-9]+")
# variables that the loader or the engine would obey in the environment of the engine
_OF_ENGINE = re.compile(
    r"LD_|DYLD_|GLIBC_|XDG_|DBUS_|LISTEN_|NOTIFY_SOCKET|TMPDIR|SSL_CERT_"
    r"|GO(?:DEBUG|GC|MEMLIMIT|MAXPROCS|TRACEBACK|COVERDIR)$"
    r"|DOCKER_|BUILDKIT_|_?CONTAINERS?_|PODMAN_|BUILDAH_|STORAGE_|REGISTR(?:Y|IES)_|NETAVARK_"
)
_ENGINE_FAILED = (125, 126, 127)
_ENGINE_SAYS = re.compile(rb"^(?:Error|docker): ", re.MULTILINE)
_GRACE_SECONDS = 1.0
_REMOVAL_SECONDS = 5.0
_ENGINE_TIMEOUT_SECONDS = 30.0
_OPEN_FILES = 4_096
_OWN_PROCESSES = 16_384  # of the user on this machine; --pids-limit bounds those of the container
_MAX_ERROR_CHARS = 300
_KILLED = 128 + signal.SIGKILL
_numbers = itertools.count(1)


class ContainerSandbox:
    """Runs commands in containers. Implements `Sandbox`.

    Args:
        engine: the program docker or podman, or one that takes the same arguments.
        image: has bash, and is on the machine already.
        homes: the private folders of the sessions, outside of every workspace.
        private: the files and folders of Larkspur itself, which no command sees.
        read_only: further paths that every command may read.
        limits: bounds of each command.
        environment: makes the environment of commands.
    """

    provider: str = "container"

    def __init__(
        self,
        engine: str,
        image: str,
        homes: SessionFolders,
        *,
        private: PrivatePlaces | None = None,
        read_only: Iterable[str] = (),
        limits: ResourceLimits | None = None,
        environment: CommandEnvironment | None = None,
    ) -> None:
        self._engine = engine
        self._image = image
        self._homes = homes
        self._private = private or PrivatePlaces()
        self._read_only = resolve_links(read_only)
        self._limits = limits or ResourceLimits()
        self._environment = environment or CommandEnvironment()
        self.capabilities = SandboxCapabilities(
            isolated=True, protects=True, hides=True, bounds="command"
        )

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        """Run a command; see the port. An exception of `on_output` ends the command and is raised.

        Raises:
            ToolError: the container cannot be started, a folder may not be a workspace, or the
                command is to reach hosts.
        """
        if command.network.allow:
            raise ToolError("commands cannot reach hosts in the sandbox container")
        home = await asyncio.to_thread(create_home, self._homes, command.session_id)
        name = f"larkspur-{os.getpid()}-{next(_numbers)}"
        execution = _Execution(
            [self._engine, *self._arguments(command, home, name)],
            name,
            command,
            on_output=on_output,
            output_bytes=self._limits.output_bytes,
        )
        return await wait_for_completion(execution.run(), execution.request_end)

    async def remove_stale(self) -> None:
        """Remove the containers of processes of Larkspur that have been killed.

        Raises:
            SandboxUnavailable: the engine does not answer.
        """
        code, listed = await _ask(self._engine, "ps", "--all", "--format", "{{.Names}}")
        if code:
            said = truncate(listed.strip().rpartition("\n")[2], _MAX_ERROR_CHARS)
            raise SandboxUnavailable(f"{self._engine} does not work: {said}")
        for name in listed.split():
            found = _NAME.fullmatch(name)
            if found and not _is_running(int(found["pid"])):
                await _ask(self._engine, "rm", "--force", name)

    def _arguments(self, command: SandboxCommand, home: str, name: str) -> list[str]:
        """Return the arguments of the engine.

        Raises:
            ToolError: a folder may not be used.
        """
        mounts = Mounts(command.access, home, read_only=self._read_only, private=self._private)
        variables = self._environment.variables(home, command.environment)
        size = self._limits.temporary_bytes
        files = min(_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        own = min(_OWN_PROCESSES, resource.getrlimit(resource.RLIMIT_NPROC)[1])
        file_bytes = self._limits.file_bytes if command.writes else 0
        comparison = mounts.comparison() if sys.platform == "linux" else []
        return [
            *("run", "--rm", "--interactive", "--name", name, "--pull", "never"),
            *("--network", "none", "--read-only", "--hostname", "sandbox"),
            *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--user", f"{os.getuid()}:{os.getgid()}"),
            *("--pids-limit", str(self._limits.processes)),
            *("--memory", str(self._limits.memory_bytes)),
            *("--memory-swap", str(self._limits.memory_bytes)),
            *("--ulimit", "core=0:0", "--ulimit", f"nofile={files}:{files}"),
            *("--ulimit", f"nproc={own}:{own}"),
            *("--ulimit", f"fsize={file_bytes}:{file_bytes}"),
            *("--tmpfs", f"/tmp:rw,mode=1777,size={size}"),  # noqa: S108  # of the container
            *_mount_options(mounts),
            *_variable_options(variables, _secret_variables(command)),
            *("--workdir", command.cwd, self._image),
            *comparison,
            *command.argv,
        ]


class _Execution:
    """One container, from its start to its end."""

    def __init__(
        self,
        argv: list[str],
        name: str,
        command: SandboxCommand,
        *,
        on_output: Callable[[bytes], None],
        output_bytes: int,
    ) -> None:
        self._argv = argv
        self._name = name
        self._command = command
        self._on_output = on_output
        self._remaining = output_bytes
        self._end = asyncio.Event()
        self._last = b""

    def request_end(self) -> None:
        """End the container. May be called at any time and repeatedly."""
        self._end.set()

    async def run(self) -> SandboxResult:
        async with OutputPipe(self._write, self.request_end) as output:
            try:
                with output.writer as writer, open_stdin(self._command.stdin) as stdin:
                    process = await asyncio.create_subprocess_exec(
                        *self._argv,
                        stdin=stdin,
                        stdout=writer,
                        stderr=writer if self._command.stderr is None else self._command.stderr,
                        cwd="/",
                        env={**_secret_variables(self._command), **_engine_environment()},
                        start_new_session=True,
                    )
            except (OSError, ValueError) as error:
                raise start_error(self._argv[0], error) from error
            timed_out = False
            try:
                timed_out = await self._wait(process)
            finally:
                if process.returncode is None:
                    await self._terminate(process)
            await output.drain()
        code = process.returncode
        if code in _ENGINE_FAILED and _ENGINE_SAYS.match(self._last) and not self._end.is_set():
            said = self._last.decode(errors="replace").strip().rpartition("\n")[2]
            raise ToolError(f"the sandbox cannot be started: {truncate(said, _MAX_ERROR_CHARS)}")
        exceeded: Resource | None = "output" if self._remaining < 0 else None
        return SandboxResult(_KILLED if code is None else code, timed_out, exceeded)

    def _write(self, chunk: bytes) -> None:
        self._last = (self._last + chunk)[-_MAX_ERROR_CHARS * 4 :]
        self._on_output(chunk[: max(self._remaining, 0)])
        self._remaining -= len(chunk)
        if self._remaining < 0:
            self._end.set()

    async def _wait(self, process: asyncio.subprocess.Process) -> bool:
        """Wait until the command has ended or is to be ended. Return whether it timed out."""
        tasks = [asyncio.create_task(process.wait()), asyncio.create_task(self._end.wait())]
        done, _ = await asyncio.wait(
            tasks, timeout=self._command.timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        for task in tasks:
            task.cancel()
        return not done

    async def _terminate(self, process: asyncio.subprocess.Process) -> None:
        """Ask the command to end, kill it after the grace period, and remove its container."""
        for number, seconds in (("TERM", _GRACE_SECONDS), ("KILL", _REMOVAL_SECONDS)):
            await _ask(self._argv[0], "kill", "--signal", number, self._name)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await process.wait()  # it removes the container
                    return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await _ask(self._argv[0], "rm", "--force", self._name)


async def _ask(engine: str, *arguments: str) -> tuple[int, str]:
    """Run a command of the engine; return its exit code and its output."""
    try:
        process = await asyncio.create_subprocess_exec(
            engine,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd="/",
            env=_engine_environment(),
        )
    except OSError as error:
        return 1, str(error)
    try:
        async with asyncio.timeout(_ENGINE_TIMEOUT_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return 1, "it does not answer"
    return process.returncode or 0, output.decode(errors="replace")


def _secret_variables(command: SandboxCommand) -> dict[str, str]:
    """Return the variables that only this command gets, such as the keys of an MCP server.

    The engine takes them from its own environment: every user sees the arguments of a process.
    """
    own = _engine_environment()
    given = command.environment.items()
    return {name: value for name, value in given if not (name in own or _OF_ENGINE.match(name))}


def _variable_options(variables: Mapping[str, str], secret: Container[str]) -> list[str]:
    options = []
    for name, value in variables.items():
        options += ["--env", name if name in secret else f"{name}={value}"]
    return options


def _engine_environment() -> dict[str, str]:
    """Return the environment of the engine's own program: nothing of Larkspur's."""
    return {
        "PATH": "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin:/opt/homebrew/bin",
        "HOME": str(Path("~").expanduser()),
        "XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}",
    }


def _mount_options(mounts: Mounts) -> list[str]:
    options = []
    for source, path, kind in mounts.sorted():
        fields = [f"dst={path}"]
        if kind == "hidden folder":
            fields.append("type=tmpfs")
        else:
            fields += ["type=bind", f"src={os.devnull if kind == 'hidden file' else source}"]
            fields += [] if kind == "writable" else ["readonly"]
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(fields)  # as the engines read it
        options += ["--mount", line.getvalue()]
    return options


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
