"""The start-up probe: tests which ways out of a sandbox are open to a command, one by one.

The real sandbox runs a script that tries to get out. The attempts leave traces on the outside (a
file, a connection, a process); these are checked instead of the script's own statements.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
import select
import signal
import socket
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import (
    RUNTIME_PROGRAMS,
    FileAccess,
    Runtime,
    Sandbox,
    SandboxCommand,
    SandboxResult,
)
from internal.open_files.paths import destination
from internal.sandbox.command_io import create_home
from internal.sandbox.limits.system_calls import FAMILIES
from internal.sandbox.workspaces import SessionFolders

_TIMEOUT_SECONDS = 20.0
_END_SECONDS = 2.0
_SESSION = SessionId("probe")
_OTHER_SESSION = SessionId("probe-2")
_VSOCK = 40  # the only family that knows no network namespace and needs no rights
_MAX_FAMILIES = 64

# Each line that it prints names something that it could do, or a program that it found.
# The last line says that everything was tried.
_SCRIPT = r"""
try() { local name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name"; fi; }
create_in() { : >"$1/larkspur-probe" && { rm "$1/larkspur-probe" || true; }; }
try write-workspace touch "$WORKSPACE/written"
try read-outside cat "$OUTSIDE/secret"
try write-outside touch "$OUTSIDE/written"
try other-sessions ls "$OTHER_HOME"
IFS=:
for folder in /usr $PATH; do try write-system create_in "$folder"; done
unset IFS
try remount mount -o remount,rw,bind "$WORKSPACE"
echo "passwords $(cat /etc/shadow 2>/dev/null | sha256sum)"
try kernel-settings bash -c 'read -r v </proc/sys/vm/swappiness; echo "$v" >/proc/sys/vm/swappiness'
try namespaces unshare -Ur true
try network bash -c 'exec 3<>/dev/udp/192.0.2.1/9'  # without a route it fails; nothing is sent
try network bash -c 'exec 3<>/dev/udp/2001:db8::1/9'
reach() { "$@" >/dev/null 2>&1; }  # what arrives is seen outside
reach bash -c "exec 3<>/dev/tcp/127.0.0.1/$TCP"
reach bash -c "exec 3<>/dev/tcp/::1/$TCP_6"
reach bash -c "echo x >/dev/udp/127.0.0.1/$UDP"
python3 -c '
import contextlib, ctypes, errno, os, socket
with contextlib.suppress(OSError):
    socket.socket(socket.AF_UNIX).connect(chr(0) + os.environ["ABSTRACT"])
# The programs mount and unshare refuse by themselves, or use another call.
kernel = ctypes.CDLL(None, use_errno=True)
workspace = os.environb[b"WORKSPACE"]
failed = kernel.mount(None, workspace, None, 0x1020, None)  # MS_REMOUNT | MS_BIND
if not failed or ctypes.get_errno() == errno.EINVAL:  # it may, but this is no mount point
    print("remount")
clone = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine, -1)
process = kernel.syscall(clone, 0x10000011, 0, 0, 0, 0)  # CLONE_NEWUSER | SIGCHLD
if process == 0:
    os._exit(0)
if process > 0:
    print("namespaces")
outside = os.environ["OUTSIDE"]
with contextlib.suppress(OSError):
    os.utime(outside + "/secret", (1, 1))
if kernel.inotify_add_watch(kernel.inotify_init1(0), outside.encode(), 0x100) >= 0:  # IN_CREATE
    print("watch-outside")
for family in map(int, os.environ["FAMILIES"].split()):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        with contextlib.suppress(OSError):
            socket.socket(family, kind).close()
            print("sockets")
' 2>/dev/null
try host-processes grep -q " $STARTED " "/proc/$GATEWAY/stat"
if ! unknown=$(tr '\0' '\n' </proc/1/environ | while IFS='=' read -r name _; do
  [ -v "$name" ] || exit 1
done); then echo host-environment; fi 2>/dev/null
# It has closed its output when it runs; it is found by the token in its environment.
started=$(setsid bash -c 'exec >/dev/null 2>&1; kill -STOP $$' &)
can_start() { local path; path=$(command -v "$1") && : <"$path"; }  # Landlock shows more than opens
for program in $PROGRAMS; do try "has-$program" can_start "$program"; done
echo finished
"""

SENTENCES = {
    "start": "A command starts in the sandbox.",
    "write-workspace": "A command can write to its workspace.",
    "read-outside": "No file outside of the workspace can be read.",
    "write-outside": "No file outside of the workspace can be written.",
    "change-times": "The times of no file outside of the workspace can be changed.",
    "watch-outside": "No folder outside of the workspace can be watched.",
    "other-sessions": "The home of another session cannot be listed.",
    "write-system": "The programs of the machine cannot be changed.",
    "remount": "No file system can be mounted again as writable.",
    "read-passwords": "The password file of the machine cannot be read.",
    "kernel-settings": "The settings of the kernel cannot be changed.",
    "namespaces": "No new namespace with more rights can be created.",
    "network": "No route leads to a network.",
    "tcp": "No service of the machine can be reached.",
    "tcp6": "No service of the machine can be reached by IPv6.",
    "udp": "No datagram leaves the sandbox.",
    "abstract": "No abstract socket of the machine can be reached.",
    "sockets": "No socket leads around the network, such as to the host of a virtual machine.",
    "host-environment": "The environment of the process that starts commands cannot be read.",
    "host-processes": "The processes of the machine cannot be seen.",
    "survival": "No process outlives its command.",
}
"""Requirements, by the name of the wall."""
_EXPECTED = frozenset({"write-workspace"})


class Wall(msgspec.Struct, frozen=True):
    """One line of the probe: a requirement, and whether it holds."""

    name: str
    sentence: str
    holds: bool
    reason: str = ""


class ProbeResult(NamedTuple):
    """The walls of a sandbox, and the languages whose programs a command has found in it."""

    walls: list[Wall]
    runtimes: tuple[Runtime, ...] = ()


async def probe_sandbox(sandbox: Sandbox, homes: SessionFolders) -> ProbeResult:
    """Try every way out of a sandbox, and look for programs in it. Leaves no traces.

    Args:
        sandbox: the sandbox to test.
        homes: the private folders of its sessions.

    Raises:
        StoreUnavailable: the homes of the probe cannot be removed.
    """
    try:
        possible = await _try_everything(sandbox, homes)
    except ToolError as error:
        failed = Wall("start", SENTENCES["start"], holds=False, reason=str(error))
        return ProbeResult([failed])
    else:
        programs = RUNTIME_PROGRAMS.items()
        found = tuple(each for each, name in programs if f"has-{name}" in possible)
        return ProbeResult(list(_walls(possible)), found)
    finally:
        for each in (_SESSION, _OTHER_SESSION):
            await homes.remove(each)


async def _try_everything(sandbox: Sandbox, homes: SessionFolders) -> set[str]:
    """Return the names of the attempts that succeeded.

    Raises:
        ToolError: the command cannot be started, or has not tried everything.
    """
    token = f"larkspur-probe-{secrets.token_hex(8)}"
    with (
        tempfile.TemporaryDirectory(
            prefix="larkspur-probe-", dir=destination(tempfile.gettempdir())
        ) as folder,
        _open_services(token) as services,
    ):
        workspace, outside = Path(folder, "workspace"), Path(folder, "outside")
        for each in (workspace, outside):
            each.mkdir()
        (outside / "secret").write_text(token)
        variables = {
            "WORKSPACE": str(workspace),
            "OUTSIDE": str(outside),
            "OTHER_HOME": await asyncio.to_thread(create_home, homes, _OTHER_SESSION),
            "TCP": _port(services, "tcp"),
            "TCP_6": _port(services, "tcp6"),
            "UDP": _port(services, "udp"),
            "ABSTRACT": token,
            "FAMILIES": " ".join(map(str, _families(sandbox))),
            "GATEWAY": str(os.getpid()),
            "STARTED": _start_time(),
            "TOKEN": token,
            "PROGRAMS": " ".join(RUNTIME_PROGRAMS.values()),
        }
        output = bytearray()
        try:
            result = await sandbox.run(
                SandboxCommand(
                    ("bash", "--noprofile", "--norc", "-c", _SCRIPT),
                    str(workspace),
                    _TIMEOUT_SECONDS,
                    _SESSION,
                    environment=variables,
                    access=FileAccess(writable=(str(workspace),)),
                ),
                output.extend,
            )
        finally:
            survived = await asyncio.to_thread(_end_processes_with, token)
        possible = set(output.decode(errors="replace").split())
        if "finished" not in possible:
            raise ToolError(_explain_end(result))
        possible |= {"survival"} if survived else set()
        possible |= {name for name, service in services.items() if _was_reached(service)}
        possible |= _traces(workspace, outside)
        if await asyncio.to_thread(_password_file) in possible:
            possible.add("read-passwords")
    return possible


def _explain_end(result: SandboxResult) -> str:
    if result.timed_out:
        return f"the command that tries everything takes more than {_TIMEOUT_SECONDS:g} s."
    return f"the command that tries everything is ended early (exit code {result.exit_code})."


@contextlib.contextmanager
def _open_services(token: str) -> Generator[dict[str, socket.socket]]:
    """Yield services of this machine that no command should reach; where it has them."""
    addresses: tuple[tuple[str, socket.AddressFamily, socket.SocketKind, Any], ...] = (
        ("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        ("tcp6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
        ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        ("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{token}"),
    )
    with contextlib.ExitStack() as stack:
        services = {}
        for name, family, kind, address in addresses:
            with contextlib.suppress(OSError):
                service = stack.enter_context(socket.socket(family, kind))
                service.bind(address)
                if kind is socket.SOCK_STREAM:
                    service.listen()
                service.setblocking(False)
                services[name] = service
        yield services


def _families(sandbox: Sandbox) -> list[int]:
    """Return the socket families that must be denied, whichever of them the kernel has."""
    if sandbox.provider == "container":  # the filter is that of the engine
        return [_VSOCK]
    return [each for each in range(_MAX_FAMILIES) if each not in FAMILIES]


def _port(services: dict[str, socket.socket], name: str) -> str:
    return str(services[name].getsockname()[1]) if name in services else "9"


def _was_reached(service: socket.socket) -> bool:
    try:
        if service.type is socket.SOCK_DGRAM:
            service.recv(1)
        else:
            service.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _traces(workspace: Path, outside: Path) -> set[str]:
    """Return the traces of the script, as seen from the outside."""
    found = set()
    if not (workspace / "written").exists():
        found.add("no-workspace")
    if (outside / "written").exists():
        found.add("write-outside")
    if (outside / "secret").stat().st_mtime == 1:
        found.add("change-times")
    return found


def _password_file() -> str | None:
    """Return the digest of the password file of the machine; None without one to be read."""
    try:
        content = Path("/etc/shadow").read_bytes()
    except OSError:
        return None
    return hashlib.sha256(content).hexdigest() if content else None


def _start_time() -> str:
    """Return when this process started, in clock ticks; no other has the same with the same id."""
    try:
        status = Path("/proc/self/stat").read_text(encoding="ascii")
    except OSError:
        return "unknown"  # not Linux: containers run on another kernel
    return status.rpartition(")")[2].split()[19]


def _end_processes_with(token: str) -> bool:
    """Kill the processes whose environment has the token. Return whether there are any."""
    found = False
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(int(process.name))  # first: the number may be used again
            try:
                if token.encode() in (process / "environ").read_bytes():
                    found = True
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    select.select([descriptor], [], [], _END_SECONDS)  # it has ended
            finally:
                os.close(descriptor)
    return found


def _walls(possible: set[str]) -> Iterable[Wall]:
    for name, sentence in SENTENCES.items():
        if name in _EXPECTED:
            holds = name in possible and "no-workspace" not in possible
        else:
            holds = name not in possible
        yield Wall(name, sentence, holds)
