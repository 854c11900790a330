"""Execution of commands."""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import msgspec

from internal.agent.domain.ids import SessionId
from internal.agent.domain.permissions.network import NO_NETWORK, NetworkAccess


class FileAccess(msgspec.Struct, frozen=True):
    """The files that a command sees besides the programs of the machine and its private home.

    All paths are absolute; missing ones are ignored. The entry for the deepest folder decides about
    a file. A path outside the writable folders passes no symbolic link, else the command does not
    start; `links` has the exceptions, each with its required target.
    """

    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    links: dict[str, str] = {}


class SandboxCommand(msgspec.Struct, frozen=True):
    """A program to run. `cwd` is absolute; the timeout ends all its child processes as well.

    `stdin` is the content, or the descriptor of an open file, which is read on from its position.
    The commands of a session have one private home folder, which is empty at first. `environment`
    are variables in addition to the standard ones. Only a sandbox that isolates enforces `access`
    and `network`. Later commands of the session reach the servers of a command that `serves`.
    `stderr` is the descriptor of an open file for standard error; None joins it to the output. A
    command without `writes` may delete files but not write to any.
    """

    argv: tuple[str, ...]
    cwd: str
    timeout_seconds: float
    session_id: SessionId
    stdin: bytes | int = b""
    environment: dict[str, str] = {}
    access: FileAccess = FileAccess()
    network: NetworkAccess = NO_NETWORK
    serves: bool = False
    stderr: int | None = None
    writes: bool = True


Runtime = Literal["python", "node", "bash"]
RUNTIME_PROGRAMS: Mapping[Runtime, str] = {"python": "python3", "node": "node", "bash": "bash"}
"""The languages of `run_code`, with their requirements for the sandbox."""

Resource = Literal["memory", "processes", "output", "disk", "connections"]


class SandboxResult(msgspec.Struct, frozen=True):
    """The exit of a command. `exit_code` is negative after a signal.

    `exceeded` is the resource of which it used more than allowed, `refused` the hosts that it tried
    to reach without permission, as host:port. `refused_addresses` have an allowed host but a
    private address, and `forbidden` an address that no setting allows. Only a sandbox that isolates
    has bounds.
    """

    exit_code: int
    timed_out: bool = False
    exceeded: Resource | None = None
    refused: tuple[str, ...] = ()
    refused_addresses: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


class SandboxCapabilities(msgspec.Struct, frozen=True):
    """Properties of a sandbox.

    - `isolated`: a command changes and reads no file besides its `FileAccess` and the system, and
      reaches no network besides its `NetworkAccess` and no process of the machine
    - `hosts`: it can let a command reach single hosts
    - `protects`: files that are read-only in a writable folder cannot be changed
    - `hides`: names and attributes of other files, and a folder of Larkspur in the workspace,
      cannot be seen
    - `bounds`: the scope of the bounds of memory and processes
    - `bounded_together`: the resources bounded for all commands together: memory, processes,
      processors
    - `runtimes`: the languages whose programs commands find; all until the sandbox has been tried
    - `read_only`: paths that every command may read besides the programs of the machine
    - `packages`: the Python packages that commands find, such as numpy==2.4.0
    - `path`: the PATH of commands, if they find the programs of this machine; "" if they do not
    """

    isolated: bool = False
    hosts: bool = False
    protects: bool = False
    hides: bool = False
    bounds: Literal["command", "process", "none"] = "none"
    bounded_together: tuple[str, ...] = ()
    runtimes: tuple[Runtime, ...] = tuple(RUNTIME_PROGRAMS)
    read_only: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    path: str = ""


class Sandbox(Protocol):
    """Runs commands in their own process group, in a new environment without API keys."""

    provider: str
    capabilities: SandboxCapabilities

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        """Run a command. `on_output` gets its stdout and stderr, interleaved in order.

        After it returns, raises or is cancelled, no process of the group is left.

        Raises:
            ToolError: the program cannot be started, or the home folder cannot be created.
        """
        ...
