"""The start-up probe: each wall is broken in a real sandbox, and the probe must notice it."""

import asyncio
import contextlib
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from internal.agent.domain.errors import SandboxUnavailable
from internal.agent.ports.sandbox import Sandbox, SandboxCommand
from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.environment import CommandEnvironment
from internal.sandbox.landlock import LandlockSandbox
from internal.sandbox.limits.resource_limits import ResourceLimits
from internal.sandbox.native import NativeSandbox
from internal.sandbox.probe import SENTENCES, probe_sandbox
from internal.sandbox.selection import require_isolation
from internal.sandbox.workspaces import SessionFolders
from tests.support.sandboxes import sandbox_class_params

Change = Callable[[list[str], Mapping[str, str]], list[str]]
"""Returns other arguments of bubblewrap; it also gets the variables of the probe's command."""


@dataclass(frozen=True)
class Weakening:
    """One respect in which a sandbox of bubblewrap is weaker, and all walls that it breaks."""

    broken: frozenset[str]
    change: Change
    all_calls: bool = False
    """Let the command make all system calls."""
    variable: str = ""
    """A variable of the environment in which bubblewrap is started."""


class _LeakyEnvironment(CommandEnvironment):
    """An environment with one more variable."""

    def __init__(self, variable: str) -> None:
        super().__init__()
        self._variables[variable] = "secret"


class WeakenedSandbox(BubblewrapSandbox):
    """The bubblewrap sandbox with a weakening. `tokens` holds the tokens of its commands."""

    def __init__(self, homes: SessionFolders, weakening: Weakening) -> None:
        variable = weakening.variable
        super().__init__(homes, environment=_LeakyEnvironment(variable) if variable else None)
        self._change = weakening.change
        self.tokens: list[str] = []
        if weakening.all_calls:
            self._denied_calls = b""

    def arguments(self, command: SandboxCommand, home: str) -> list[str]:
        self.tokens.append(command.environment["TOKEN"])
        return self._change(super().arguments(command, home), command.environment)


def replacing(*pairs: tuple[str, str]) -> Change:
    """Return a change that replaces sequences of arguments; each must occur exactly once."""

    def change(arguments: list[str], _: Mapping[str, str]) -> list[str]:
        for old, new in pairs:
            size = len(old.split())
            starts = range(len(arguments))
            (start,) = (n for n in starts if arguments[n : n + size] == old.split())
            arguments = [*arguments[:start], *new.split(), *arguments[start + size :]]
        return arguments

    return change


def mounting(option: str, variable: str) -> Change:
    """Return a change that lets the command see the folder that a variable names."""

    def change(arguments: list[str], variables: Mapping[str, str]) -> list[str]:
        end = arguments.index("--chdir") - 2  # in front of --remount-ro /
        path = variables[variable]
        return [*arguments[:end], option, path, path, *arguments[end:]]

    return change


def with_writable_system(arguments: list[str], _: Mapping[str, str]) -> list[str]:
    """Let the command create programs in a /usr that its user may change."""
    parts = (f"--ro-bind {part} {part}" for part in sorted(map(str, Path("/usr").iterdir())))
    own = " ".join(("--tmpfs /usr", *parts))
    return replacing(("--ro-bind /usr /usr", own))(arguments, {})


NETWORK = Weakening(
    frozenset({"network", "tcp", "tcp6", "udp", "abstract"}),
    replacing(("--unshare-all", "--unshare-all --share-net")),
)
READABLE = Weakening(frozenset({"read-outside", "watch-outside"}), mounting("--ro-bind", "OUTSIDE"))
WRITABLE = Weakening(
    READABLE.broken | {"write-outside", "change-times"}, mounting("--bind", "OUTSIDE")
)
_OWN_PROCESSES = ("--unshare-all", "--unshare-ipc --unshare-net --unshare-uts --unshare-cgroup")

WEAKENED: dict[str, Weakening] = {
    "start": Weakening(
        frozenset({"start"}), replacing(("--ro-bind /usr /usr", "--ro-bind /no/such/folder /usr"))
    ),
    "write-workspace": Weakening(
        frozenset({"write-workspace"}), mounting("--ro-bind", "WORKSPACE")
    ),
    "read-outside": READABLE,
    "write-outside": WRITABLE,
    "change-times": WRITABLE,
    "watch-outside": READABLE,
    "other-sessions": Weakening(frozenset({"other-sessions"}), mounting("--ro-bind", "OTHER_HOME")),
    "write-system": Weakening(frozenset({"write-system"}), with_writable_system),
    "remount": Weakening(
        # the command has the rights of root in the user namespace of bubblewrap
        frozenset({"remount", "namespaces", "sockets"}),
        replacing(
            ("--uid 1000 --gid 1000", "--uid 0 --gid 0"),
            ("--cap-drop ALL", "--cap-add ALL"),
            ("--disable-userns", ""),
        ),
        all_calls=True,
    ),
    "read-passwords": Weakening(
        frozenset({"read-passwords"}),
        replacing(("--proc /proc", "--ro-bind /etc/shadow /etc/shadow --proc /proc")),
    ),
    "kernel-settings": Weakening(
        frozenset({"kernel-settings"}), replacing(("--ro-bind /proc/sys", "--bind /proc/sys"))
    ),
    "namespaces": Weakening(
        frozenset({"namespaces", "sockets"}), replacing(("--disable-userns", "")), all_calls=True
    ),
    "network": NETWORK,
    "tcp": NETWORK,
    "tcp6": NETWORK,
    "udp": NETWORK,
    "abstract": NETWORK,
    "sockets": Weakening(frozenset({"sockets"}), replacing(), all_calls=True),
    "host-environment": Weakening(
        frozenset({"host-environment"}),
        replacing(("--unshare-all", "--unsetenv API_KEY --unshare-all")),
        variable="API_KEY",
    ),
    "host-processes": Weakening(
        frozenset({"host-processes"}), replacing(("--proc /proc", "--ro-bind /proc /proc"))
    ),
    "survival": Weakening(
        frozenset({"survival"}), replacing(_OWN_PROCESSES, ("--proc /proc", "--dir /proc"))
    ),
}


def can_connect(family: socket.AddressFamily, address: str) -> bool:
    """Return whether there is a route to an address. Nothing is sent."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
    except OSError:
        return False
    return True


def can_make_socket(*families: int) -> bool:
    """Return whether the kernel has one of these families."""
    for family in families:
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
            with contextlib.suppress(OSError):
                socket.socket(family, kind).close()
                return True
    return False


# What the machine may deny to the user of the tests, whatever the sandbox lets through.
POSSIBLE: dict[str, Callable[[], bool]] = {
    "read-passwords": lambda: os.access("/etc/shadow", os.R_OK),
    "kernel-settings": lambda: os.access("/proc/sys/vm/swappiness", os.W_OK),
    "network": lambda: (
        can_connect(socket.AF_INET, "192.0.2.1") or can_connect(socket.AF_INET6, "2001:db8::1")
    ),
    "tcp6": lambda: can_connect(socket.AF_INET6, "::1"),
    "sockets": lambda: can_make_socket(socket.AF_VSOCK, socket.AF_ALG, socket.AF_TIPC),
}


async def broken_walls(sandbox: Sandbox, homes: SessionFolders) -> set[str]:
    return {wall.name for wall in (await probe_sandbox(sandbox, homes)).walls if not wall.holds}


@pytest.fixture
def homes(tmp_path: Path) -> SessionFolders:
    return SessionFolders(tmp_path / "homes")


def processes_with(token: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            if token.encode() in process.read_bytes():
                found.append(process.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("kind", sandbox_class_params([BubblewrapSandbox, LandlockSandbox]))
async def test_every_wall_of_a_sandbox_holds(
    homes: SessionFolders, kind: type[BubblewrapSandbox | LandlockSandbox]
) -> None:
    walls, _ = await probe_sandbox(kind(homes), homes)
    assert {wall.name for wall in walls} == SENTENCES.keys()
    assert [wall.name for wall in walls if not wall.holds] == []
    assert list(homes.root.iterdir()) == []


async def test_the_native_sandbox_has_few_walls(homes: SessionFolders) -> None:
    broken = await broken_walls(NativeSandbox(homes), homes)
    always = {"read-outside", "write-outside", "other-sessions", "tcp", "udp", "abstract"}
    assert always | {"host-processes"} <= broken
    assert not broken & {"start", "write-workspace", "survival"}


@pytest.mark.needs("namespaces")
async def test_a_check_that_is_ended_early_proves_nothing(homes: SessionFolders) -> None:
    sandbox = BubblewrapSandbox(homes, limits=ResourceLimits(output_bytes=20))
    (wall,), _ = await probe_sandbox(sandbox, homes)
    assert (wall.name, wall.holds) == ("start", False)
    assert "ended early" in wall.reason
    with pytest.raises(SandboxUnavailable, match=r"cannot be isolated .* early"):
        await require_isolation(sandbox, homes)


@pytest.mark.parametrize("kind", sandbox_class_params([BubblewrapSandbox, LandlockSandbox]))
async def test_runtimes_are_those_that_a_command_can_start(
    homes: SessionFolders, tmp_path: Path, kind: type[BubblewrapSandbox | LandlockSandbox]
) -> None:
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    for folder in (shown, hidden):
        folder.mkdir()
    for name in await asyncio.to_thread(os.listdir, "/usr/bin"):
        if name != "node":
            (shown / name).symlink_to(f"/usr/bin/{name}")
    shutil.copy("/usr/bin/env", hidden / "node")
    environment = CommandEnvironment(f"{shown}:{hidden}")
    sandbox = kind(homes, read_only=(str(shown),), environment=environment)
    assert NativeSandbox(homes, environment).capabilities.runtimes == ("python", "node", "bash")
    await require_isolation(sandbox, homes)
    assert sandbox.capabilities.runtimes == ("python", "bash")


def test_every_wall_is_broken_by_a_row() -> None:
    assert WEAKENED.keys() == SENTENCES.keys()
    assert [wall for wall, weakening in WEAKENED.items() if wall not in weakening.broken] == []


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("weakening", WEAKENED.values(), ids=WEAKENED)
async def test_a_broken_wall_is_noticed_and_no_other(
    homes: SessionFolders, weakening: Weakening
) -> None:
    sandbox = WeakenedSandbox(homes, weakening)
    can_be_broken = {wall for wall in weakening.broken if wall not in POSSIBLE or POSSIBLE[wall]()}
    assert await broken_walls(sandbox, homes) == can_be_broken
    assert [processes_with(token) for token in sandbox.tokens] == [[]]
    assert list(homes.root.iterdir()) == []
