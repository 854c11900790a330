"""The sandbox of Landlock: commands that restrict themselves, where there are no user namespaces.

A command shares the namespaces of Larkspur, for example of a container. Landlock keeps it in its
folders; a filter of system calls denies sockets, other processes and the modes of files. It has no
network, and sees the names and attributes of other files.
"""

import asyncio
import contextlib
import errno
import os
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from functools import partial
from typing import IO

import msgspec

from internal.agent.app.background_task import open_to_completion, wait_for_completion
from internal.agent.domain.errors import ToolError
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.ports.sandbox import (
    FileAccess,
    SandboxCapabilities,
    SandboxCommand,
    SandboxResult,
)
from internal.landlock.rules import READ, WRITE, LandlockRule, create_ruleset
from internal.open_files.paths import resolve_links
from internal.sandbox.command_io import create_home
from internal.sandbox.environment import CommandEnvironment
from internal.sandbox.launcher.command import LaunchedCommand
from internal.sandbox.launcher.process import Launcher
from internal.sandbox.limits.control_groups import ControlGroup, ControlGroups
from internal.sandbox.limits.resource_limits import ResourceLimits
from internal.sandbox.limits.system_calls import calls_denied_without_namespaces
from internal.sandbox.mounts import CHANGED, SYSTEM_FILES
from internal.sandbox.roots import PrivatePlaces, find_root
from internal.sandbox.workspaces import SessionFolders

_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_FILES = (
    *SYSTEM_FILES,
    "/etc/group",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/dev/random",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/vm/overcommit_memory",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")

_VARIABLES = {"GIT_CONFIG_NOSYSTEM": "1"}  # git fails on a file that exists and cannot be read


class LandlockSandbox:
    """Runs commands in Landlock 6 or newer (Linux 6.12). Implements `Sandbox`.

    Args:
        homes: the private folders of the sessions, outside of every workspace.
        private: the files and folders of Larkspur: a folder that contains one is not a workspace.
        read_only: further paths that every command may read.
        limits: bounds of each command.
        groups: makes the bounds hold for all processes of a command together.
        environment: finds programs and makes the environment of commands.
    """

    provider: str = "landlock"

    def __init__(
        self,
        homes: SessionFolders,
        *,
        private: PrivatePlaces | None = None,
        read_only: Iterable[str] = (),
        limits: ResourceLimits | None = None,
        groups: ControlGroups | None = None,
        environment: CommandEnvironment | None = None,
    ) -> None:
        self._homes = homes
        self._private = private or PrivatePlaces()
        self._read_only = resolve_links(read_only)
        self._limits = limits or ResourceLimits()
        self._groups = groups
        self._environment = environment or CommandEnvironment()
        self._launcher = Launcher()
        bounded = groups is not None and groups.bounds_commands
        self.capabilities = SandboxCapabilities(
            isolated=True,
            bounds="command" if bounded else "process",
            bounded_together=groups.bounded_together if groups else (),
        )

    def close(self) -> None:
        """End the process that starts commands; running commands are not affected."""
        self._launcher.close()

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        """Run a command; see the port. An exception of `on_output` ends the command and is raised.

        Raises:
            ToolError: the sandbox cannot be started, a folder may not be a workspace, or the
                command is to reach hosts.
        """
        if command.network.allow:
            raise ToolError("commands cannot reach hosts in the sandbox landlock")
        program = self._environment.encode(command.argv, full_path=False)
        home = await asyncio.to_thread(create_home, self._homes, command.session_id)
        group = self._groups.create() if self._groups else ControlGroup(())
        output = _BoundedOutput(on_output, self._limits.output_bytes)
        try:
            async with self._confine(command.access, home, group) as (temporary, descriptors):
                further = {**command.environment, **_VARIABLES, "TMPDIR": temporary}
                launched = LaunchedCommand(
                    self._launcher,
                    command,
                    [
                        *self._limits.arguments(command.timeout_seconds, writes=command.writes),
                        *program,
                    ],
                    self._environment.variables(home, further),
                    on_output=output.write,
                    confinement=descriptors,
                )
                output.on_excess = launched.request_end
                result = await wait_for_completion(launched.run(), launched.request_end)
            exceeded = "output" if output.exceeded else group.exceeded()
            return msgspec.structs.replace(result, exceeded=exceeded)
        finally:
            if self._groups:
                self._groups.remove(group)

    @contextlib.asynccontextmanager
    async def _confine(
        self, access: FileAccess, home: str, group: ControlGroup
    ) -> AsyncGenerator[tuple[str, list[int]]]:
        """Yield a private folder for temporary files, and the descriptors for `launcher.program`.

        Raises:
            ToolError: the kernel refuses it, or a folder contains one of Larkspur.
        """
        with contextlib.ExitStack() as stack:
            try:
                temporary = stack.enter_context(
                    tempfile.TemporaryDirectory(
                        prefix=".tmp-", dir=home, ignore_cleanup_errors=True
                    )
                )
                rules = self._rules(access, home)
                ruleset = await open_to_completion(partial(create_ruleset, rules), os.close)
                stack.callback(os.close, ruleset)
                calls: IO[bytes] = stack.enter_context(tempfile.TemporaryFile(buffering=0))
                calls.write(calls_denied_without_namespaces())
                groups = [stack.enter_context(each.open("wb")) for each in group.members()]
            except OSError as error:
                if error.errno in {errno.ELOOP, errno.ENOTDIR}:  # a folder became a link just now
                    raise ToolError(CHANGED) from error
                reason = describe_system_error(error)
                raise ToolError(f"the sandbox cannot be started: {reason}") from error
            yield temporary, [ruleset, calls.fileno(), *(each.fileno() for each in groups)]

    def _rules(self, access: FileAccess, home: str) -> list[LandlockRule]:
        """Return the rules for the files that a command may use.

        A path in a writable folder adds nothing: it may be a link that an earlier command made.

        Raises:
            ToolError: a root leads elsewhere, belongs to Larkspur, or contains a folder of
                Larkspur, which could not be hidden.
        """
        writable = [os.path.normpath(path) for path in (*access.writable, home)]
        readable = (
            path
            for path in map(os.path.normpath, access.read_only)
            if not any(_is_in(path, folder) for folder in writable)
        )
        changed = [find_root(path, access.links) for path in _outermost(writable)]
        read = [find_root(path, access.links) for path in readable]
        roots = [each for each in (*changed, *read) if each is not None]
        self._private.check(roots)
        hidden = list(map(os.path.realpath, self._private.hidden))
        for folder in (*(each.real for each in roots), *self._read_only.values()):
            if found := next((one for one in hidden if _is_in(one, folder)), None):
                raise ToolError(
                    f"{folder} contains {found} of Larkspur, which the sandbox of this machine"
                    " (landlock) cannot hide; choose another folder"
                )
        system = (*_SYSTEM_FOLDERS, *_FILES, *self._read_only)
        return [
            *(LandlockRule(path, READ) for path in system),
            *(LandlockRule(path, READ | WRITE) for path in _DEVICES),
            *(LandlockRule(each.real, READ | WRITE, is_exact=True) for each in changed if each),
            *(LandlockRule(each.real, READ, is_exact=True) for each in read if each),
        ]


class _BoundedOutput:
    """Passes the output of a command on until it is too long."""

    def __init__(self, on_output: Callable[[bytes], None], limit: int) -> None:
        self._on_output = on_output
        self._remaining = limit
        self.on_excess: Callable[[], None] = lambda: None

    @property
    def exceeded(self) -> bool:
        return self._remaining < 0

    def write(self, chunk: bytes) -> None:
        self._on_output(chunk[: max(self._remaining, 0)])
        self._remaining -= len(chunk)
        if self.exceeded:
            self.on_excess()


def _outermost(folders: Iterable[str]) -> Iterator[str]:
    """Yield the folders that are in no other one."""
    known = list(folders)
    for folder in known:
        if not any(_is_in(folder, other) for other in known):
            yield folder


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")
