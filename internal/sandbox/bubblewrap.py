"""The sandbox of bubblewrap: commands in namespaces of their own, without network unless allowed.

A command sees `/usr`, a few files of `/etc`, a private `/tmp`, its home and the folders of its
`FileAccess`; no other file, no process and no service of the machine. When its first process exits,
the kernel ends all others, including processes that left the process group.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from internal.agent.app.background_task import wait_for_completion
from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import (
    Resource,
    SandboxCapabilities,
    SandboxCommand,
    SandboxResult,
)
from internal.open_files.paths import resolve_links
from internal.output_pipe.pipe import OutputPipe, wait_until_readable
from internal.sandbox.child_process import ChildProcess
from internal.sandbox.command_io import create_home, open_stdin, start_error
from internal.sandbox.environment import CommandEnvironment
from internal.sandbox.limits.control_groups import ControlGroup, ControlGroups
from internal.sandbox.limits.resource_limits import ResourceLimits
from internal.sandbox.limits.system_calls import denied_system_calls
from internal.sandbox.mounts import SYSTEM_FILES, Mounts
from internal.sandbox.network.command_network import CommandNetwork, hosts_file
from internal.sandbox.network.namespace import open_namespace
from internal.sandbox.network.neighbours import listening_ports
from internal.sandbox.network.proxy import Resolver, resolve
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.workspaces import SessionFolders

PROGRAM = "/usr/bin/bwrap"
"""The system's own program: Ubuntu's AppArmor lets no other create user namespaces."""

_GRACE_SECONDS = 1.0
"""From SIGTERM to SIGKILL."""
_POLL_SECONDS = 0.02
_MAX_ERROR_BYTES = 1_000

_ETC = Path(__file__).with_name("etc")
_HOSTS = (_ETC / "hosts").read_text(encoding="ascii")
_ROOT_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


class BubblewrapSandbox:
    """Runs commands in bubblewrap 0.8 or newer. Implements `Sandbox`.

    Args:
        homes: the private folders of the sessions, outside of every workspace.
        private: the files and folders of Larkspur itself, which no command sees, also if they are
            in its workspace.
        read_only: further paths that every command may read.
        limits: bounds of each command.
        private_networks: let commands that may reach a host do so if its address is of this machine
            or of a private network.
        groups: makes the bounds hold for all processes of a command together.
        environment: finds programs and makes the environment of commands.
        resolver: resolves the names of hosts that commands may reach.
    """

    provider: str = "bubblewrap"

    def __init__(
        self,
        homes: SessionFolders,
        *,
        private: PrivatePlaces | None = None,
        read_only: Iterable[str] = (),
        limits: ResourceLimits | None = None,
        private_networks: bool = False,
        groups: ControlGroups | None = None,
        environment: CommandEnvironment | None = None,
        resolver: Resolver = resolve,
    ) -> None:
        self._homes = homes
        self._private = private or PrivatePlaces()
        self._read_only = resolve_links(read_only)
        self._limits = limits or ResourceLimits()
        self._private_networks = private_networks
        self._groups = groups
        self._environment = environment or CommandEnvironment()
        self._resolver = resolver
        bounded = groups is not None and groups.bounds_commands
        self.capabilities = SandboxCapabilities(
            isolated=True,
            hosts=True,
            protects=True,
            hides=True,
            bounds="command" if bounded else "process",
            bounded_together=groups.bounded_together if groups else (),
        )
        self._base = _base_arguments(self._limits.temporary_bytes)
        self._denied_calls = denied_system_calls()
        self._running: list[_Execution] = []

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        """Run a command; see the port. An exception of `on_output` ends the command and is raised.

        Raises:
            ToolError: the sandbox cannot be started, or a folder may not be a workspace.
        """
        program = self._environment.encode(command.argv, full_path=False)
        home, arguments = await asyncio.to_thread(self._prepare, command)
        network = CommandNetwork(
            command.network,
            private=self._private_networks,
            neighbours=await self._servers(command.session_id),
            resolver=self._resolver,
        )
        group = self._groups.create() if self._groups else ControlGroup(())
        further = {**command.environment, **network.variables}
        execution = _Execution(
            command,
            on_output,
            network=network,
            join=group.arguments(),
            arguments=[*arguments, *program],
            environment=self._environment.variables(home, further),
            bounds=_Bounds(self._limits.output_bytes, self._denied_calls),
        )
        self._running.append(execution)
        try:
            result = await wait_for_completion(execution.run(), execution.request_end)
            return msgspec.structs.replace(result, exceeded=result.exceeded or group.exceeded())
        finally:
            self._running.remove(execution)
            if self._groups:
                self._groups.remove(group)

    async def _servers(self, session_id: SessionId) -> dict[int, set[int]]:
        """Return the ports of the commands of a session that serve, by a process of each."""
        own = [one for one in self._running if one.serves and one.session_id == session_id]
        found: dict[int, set[int]] = {}
        for one in own:
            pid = one.first_process
            if pid is None:
                continue
            ports = await asyncio.to_thread(listening_ports, pid)
            if servers := ports - one.forwarded_ports:
                found[pid] = servers
        return found

    def _prepare(self, command: SandboxCommand) -> tuple[str, list[str]]:
        """Return the home folder of a command, and the arguments of bubblewrap for it. Blocks.

        Raises:
            ToolError: a folder may not be used, or cannot be created.
        """
        home = create_home(self._homes, command.session_id)
        return home, self.arguments(command, home)

    def arguments(self, command: SandboxCommand, home: str) -> list[str]:
        """Return the arguments of bubblewrap in front of the program.

        Raises:
            ToolError: a folder may not be used.
        """
        mounts = Mounts(command.access, home, read_only=self._read_only, private=self._private)
        return [
            *self._base,
            *_mount_arguments(mounts),
            *("--remount-ro", "/", "--chdir", command.cwd, "--"),
            *mounts.comparison(),
            *self._limits.arguments(command.timeout_seconds, writes=command.writes),
        ]


class _Bounds(NamedTuple):
    """More output ends a command; the filter denies system calls."""

    output_bytes: int
    denied_calls: bytes


class _Execution:
    """One command, from its start to the end of its last process.

    Args:
        command: the requested command.
        on_output: gets the output.
        network: connects the command to the hosts that it may reach.
        join: a program and arguments to start bubblewrap with, or nothing.
        arguments: the arguments of bubblewrap.
        environment: the variables of the command, which bubblewrap gets as well: it would show its
            own in /proc/1/environ.
        bounds: limits of the files that it writes and of its system calls.
    """

    def __init__(
        self,
        command: SandboxCommand,
        on_output: Callable[[bytes], None],
        *,
        network: CommandNetwork,
        join: Sequence[str],
        arguments: Sequence[str | bytes],
        environment: Mapping[str, str],
        bounds: _Bounds,
    ) -> None:
        self._command = command
        self._on_output = on_output
        self._network = network
        self._hosts = hosts_file(_HOSTS, network.hosts) if network.hosts else b""
        self._join = join
        self._arguments = arguments
        self._environment = environment
        self._remaining = bounds.output_bytes
        self._denied_calls = bounds.denied_calls
        self._end = asyncio.Event()
        self._first_output = b""
        self._status: dict[str, Any] = {}
        self._unread_status = b""
        self._status_file: IO[bytes] | None = None

    @property
    def serves(self) -> bool:
        """True if other commands of the session reach its servers."""
        return self._command.serves

    @property
    def session_id(self) -> SessionId:
        """The session of the command."""
        return self._command.session_id

    @property
    def forwarded_ports(self) -> frozenset[int]:
        """Ports of its own network that do not belong to its servers."""
        return self._network.taken

    @property
    def first_process(self) -> int | None:
        """A process in the namespaces of the command, None if none is known."""
        if self._status_file is not None:
            self._read_status(self._status_file)
        return self._status.get("child-pid")

    def request_end(self) -> None:
        """End all processes. May be called at any time and repeatedly."""
        self._end.set()

    async def run(self) -> SandboxResult:
        """Start the command, wait for it, end its processes."""
        with _open_pipe() as (status, status_writer), _open_pipe() as (gate, gate_writer):
            os.set_blocking(status.fileno(), False)
            self._status_file = status
            async with OutputPipe(self._write, self.request_end) as output:
                process = self._start(output.writer, status_writer, gate)
                status_writer.close()
                try:
                    async with self._connected(status):
                        gate_writer.write(b"1")  # the program starts
                        timed_out = await self._wait(process)
                finally:
                    if process.returncode is None:
                        await self._terminate(process, status)
                    self._read_status(status)
                    await self._wait_for_last_process()
                await output.drain()
            self._status_file = None
        return self._result(timed_out=timed_out)

    @contextlib.asynccontextmanager
    async def _connected(self, status: IO[bytes]) -> AsyncGenerator[None]:
        """Connect the command to the hosts that it may reach.

        Raises:
            ToolError: its network namespace cannot be entered.
        """
        is_needed = self._network.is_needed
        first = await self._wait_for_first_process(status) if is_needed else None
        if first is None:
            yield
            return
        async with open_namespace(first) as own, self._network.connect(own):
            yield

    async def _wait_for_first_process(self, status: IO[bytes]) -> int | None:
        """Wait for the process in whose namespaces the command runs; None if there is none."""
        while "child-pid" not in self._status:
            await wait_until_readable(status)
            if self._read_status(status):
                break
        return self._status.get("child-pid")

    def _start(self, output: IO[bytes], status: IO[bytes], gate: IO[bytes]) -> ChildProcess:
        denied = self._denied_calls
        descriptors = [status.fileno()]
        options = ["--json-status-fd", str(status.fileno())]
        if self._network.is_needed:
            descriptors.append(gate.fileno())
            options += ["--block-fd", str(gate.fileno())]
        try:
            with (
                _pipe_with(denied) as calls,
                _pipe_with(self._hosts) as hosts,
                open_stdin(self._command.stdin) as stdin,
            ):
                arguments = self._arguments
                if denied:
                    descriptors.append(calls.fileno())
                    options += ["--seccomp", str(calls.fileno())]
                if self._hosts:
                    descriptors.append(hosts.fileno())
                    arguments = _with_hosts(arguments, hosts.fileno())
                error = output if self._command.stderr is None else self._command.stderr
                return ChildProcess(
                    (*self._join, PROGRAM, *options, *arguments),
                    streams=(stdin, output, error),
                    environment=self._environment,
                    descriptors=descriptors,
                )
        except (OSError, ValueError) as error:
            raise start_error(self._command.argv[0], error) from error
        finally:
            output.close()

    def _write(self, chunk: bytes) -> None:
        if len(self._first_output) < _MAX_ERROR_BYTES:
            self._first_output += chunk[:_MAX_ERROR_BYTES]
        self._on_output(chunk[: max(self._remaining, 0)])
        self._remaining -= len(chunk)
        if self._remaining < 0:
            self._end.set()

    async def _wait(self, process: ChildProcess) -> bool:
        """Wait until the command has ended or is to be ended. Return whether it timed out."""
        exited, ended = (
            asyncio.create_task(process.wait()),
            asyncio.create_task(self._end.wait()),
        )
        done, _ = await asyncio.wait(
            {exited, ended},
            timeout=self._command.timeout_seconds,
            return_when=asyncio.FIRST_COMPLETED,
        )
        exited.cancel()
        ended.cancel()
        return not done

    async def _terminate(self, process: ChildProcess, status: IO[bytes]) -> None:
        """Ask all processes to end, kill them after the grace period, and wait for the end."""
        self._read_status(status)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                signalled: set[int] = set()
                while process.returncode is None:
                    signalled |= self._signal_new(signalled)
                    await _exit_or_pause(process)
        process.kill()  # --die-with-parent: the first process of the namespace ends with it
        await process.wait()

    async def _wait_for_last_process(self) -> None:
        """Wait until no process is left: bubblewrap exits a moment before its first process.

        The kernel ends that one last.
        """
        first = self._status.get("child-pid")
        if first is None:
            return
        with contextlib.suppress(OSError, TimeoutError):
            descriptor = os.pidfd_open(first)  # its number is not used again so soon
            try:
                async with asyncio.timeout(_GRACE_SECONDS):
                    await wait_until_readable(descriptor)
            finally:
                os.close(descriptor)

    def _signal_new(self, signalled: set[int]) -> set[int]:
        """Send SIGTERM to the processes of the namespace that did not get it yet."""
        first = self._status.get("child-pid")
        if first is None:
            return set()
        reached = set[int]()
        for pid in set(_descendants(first)) - signalled:
            with contextlib.suppress(OSError):
                descriptor = os.pidfd_open(pid)
                try:
                    namespace = Path(f"/proc/{pid}/ns/pid").stat().st_ino
                    if namespace == self._status.get("pid-namespace"):
                        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
                        signal.pidfd_send_signal(descriptor, signal.SIGCONT)
                        reached.add(pid)
                finally:
                    os.close(descriptor)
        return reached  # without commands that are still being started

    def _read_status(self, status: IO[bytes]) -> bool:
        """Process the reports of bubblewrap, one JSON object per line. Return whether it ended."""
        while chunk := status.read(4_096):
            *lines, self._unread_status = (self._unread_status + chunk).split(b"\n")
            for each in lines:
                with contextlib.suppress(ValueError):
                    self._status |= json.loads(each)
        return chunk is not None

    def _result(self, *, timed_out: bool) -> SandboxResult:
        code = self._status.get("exit-code")
        if code is None and not timed_out and not self._end.is_set():
            said = self._first_output.decode(errors="replace").strip().rpartition("\n")[2]
            raise ToolError(f"the sandbox cannot be started: {said}")
        return SandboxResult(
            -signal.SIGKILL if code is None else code,
            timed_out,
            self._exceeded,
            self._network.refused,
            self._network.refused_addresses,
            self._network.forbidden,
        )

    @property
    def _exceeded(self) -> Resource | None:
        if self._remaining < 0:
            return "output"
        return "connections" if self._network.is_crowded else None


def _base_arguments(temporary_bytes: int) -> list[str]:
    """Return the arguments that all commands share: namespaces, rights, the file system."""
    size = ("--size", str(temporary_bytes), "--tmpfs")
    arguments = [
        *("--unshare-all", "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"),
        *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--hostname", "sandbox"),
        *("--ro-bind", "/usr", "/usr"),
    ]
    for name in _ROOT_FOLDERS:
        folder = Path("/", name)
        if folder.is_symlink():
            arguments += ["--symlink", str(folder.readlink()), f"/{name}"]
        elif folder.is_dir():
            arguments += ["--ro-bind", f"/{name}", f"/{name}"]
    for path in SYSTEM_FILES:
        arguments += ["--ro-bind-try", path, path]
    for file in sorted(_ETC.iterdir()):
        arguments += ["--ro-bind", str(file), f"/etc/{file.name}"]
    return [
        *arguments,
        # /proc/sys: bubblewrap 0.8 leaves the kernel's settings writable for root without rights
        *("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"),
        *("--dev", "/dev", *size, "/dev/shm", "--remount-ro", "/dev", *size, "/tmp"),  # noqa: S108 - private
    ]


def _with_hosts(arguments: Sequence[str | bytes], descriptor: int) -> list[str | bytes]:
    """Return arguments with the content of a descriptor as /etc/hosts."""
    at = arguments.index("/etc/hosts")
    data = ("--perms", "0444", "--ro-bind-data", str(descriptor))
    return [*arguments[: at - 2], *data, *arguments[at:]]


def _mount_arguments(mounts: Mounts) -> list[str]:
    """Return the arguments for the files of a command; one that has just gone is ignored."""
    arguments: list[str] = []
    for source, path, kind in mounts.sorted():
        match kind:
            case "writable":
                arguments += ["--bind-try", source, path]
            case "read-only":
                arguments += ["--ro-bind-try", source, path]
            case "hidden folder":
                arguments += ["--tmpfs", path]
            case "hidden file":
                arguments += ["--ro-bind", os.devnull, path]
    return arguments


@contextlib.contextmanager
def _open_pipe() -> Generator[tuple[IO[bytes], IO[bytes]]]:
    """Yield both ends of a pipe, without buffers."""
    reader, writer = os.pipe()
    with (
        os.fdopen(reader, "rb", buffering=0) as source,
        os.fdopen(writer, "wb", buffering=0) as sink,
    ):
        yield source, sink


@contextlib.contextmanager
def _pipe_with(content: bytes) -> Generator[IO[bytes]]:
    """Yield the reading end of a pipe that holds a content of a few hundred bytes."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as sink:
        sink.write(content)
    with os.fdopen(reader, "rb", buffering=0) as source:
        yield source


async def _exit_or_pause(process: ChildProcess) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_POLL_SECONDS):
            await process.wait()


def _descendants(pid: int) -> Iterable[int]:
    """Return the processes below a process."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return
    for child in map(int, listed):
        yield child
        yield from _descendants(child)
