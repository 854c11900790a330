"""The start-up probe: what a command can really do in a sandbox, wall by wall.

The real sandbox runs a script that tries to get out. The attempts leave traces on the outside (a
file, a connection, a process), and these are checked, not what the script says of itself.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
import socket
import tempfile
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import FileAccess, Sandbox, SandboxCommand

_TIMEOUT_SECONDS = 20.0
PROBE_SESSION = SessionId("probe")

# Each line that it prints names something that it could do.
_SCRIPT = r"""
try() { local name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name"; fi; }
try write-workspace touch "$WORKSPACE/written"
try read-outside cat "$OUTSIDE/secret"
try write-outside touch "$OUTSIDE/written"
try write-system bash -c 'touch /usr/larkspur-probe && rm /usr/larkspur-probe'
try remount mount -o remount,rw,bind /usr
echo "passwords $(cat /etc/shadow 2>/dev/null | sha256sum)"
try kernel-settings bash -c 'read -r v </proc/sys/vm/swappiness; echo "$v" >/proc/sys/vm/swappiness'
try namespaces unshare -Ur true
reach() { "$@" >/dev/null 2>&1; }  # what arrives is seen outside
reach bash -c "exec 3<>/dev/tcp/127.0.0.1/$TCP"
reach bash -c "exec 3<>/dev/tcp/::1/$TCP_6"
reach bash -c "echo x >/dev/udp/127.0.0.1/$UDP"
reach python3 -c 'import os, socket
socket.socket(socket.AF_UNIX).connect(chr(0) + os.environ["ABSTRACT"])'
try host-processes grep -q " $STARTED " "/proc/$GATEWAY/stat"
if ! unknown=$(tr '\0' '\n' </proc/1/environ | while IFS='=' read -r name _; do
  [ -v "$name" ] || exit 1
done); then echo host-environment; fi 2>/dev/null
setsid sleep 7100 & # the token in its environment identifies it
disown
"""

_SENTENCES = {
    "start": "A command starts in the sandbox.",
    "write-workspace": "A command can write to its workspace.",
    "read-outside": "No file outside of the workspace can be read.",
    "write-outside": "No file outside of the workspace can be written.",
    "write-system": "The programs of the machine cannot be changed.",
    "remount": "No file system can be mounted again as writable.",
    "read-passwords": "The password file of the machine cannot be read.",
    "kernel-settings": "The settings of the kernel cannot be changed.",
    "namespaces": "No new namespace with more rights can be created.",
    "tcp": "No service of the machine can be reached.",
    "tcp6": "No service of the machine can be reached by IPv6.",
    "udp": "No datagram leaves the sandbox.",
    "abstract": "No abstract socket of the machine can be reached.",
    "host-environment": "The environment of the process that starts commands cannot be read.",
    "host-processes": "The processes of the machine cannot be seen.",
    "survival": "No process outlives its command.",
}
_EXPECTED = frozenset({"write-workspace"})


@dataclass(frozen=True)
class Wall:
    """One line of the probe: what must hold, and whether it does."""

    name: str
    sentence: str
    holds: bool
    reason: str = ""


async def probe_sandbox(sandbox: Sandbox) -> list[Wall]:
    """Try every way out of a sandbox and return what holds. Never raises a ToolError."""
    token = f"larkspur-probe-{secrets.token_hex(8)}"
    with (
        tempfile.TemporaryDirectory(prefix="larkspur-probe-") as folder,
        _open_services(token) as services,
    ):
        workspace, outside = Path(folder, "workspace"), Path(folder, "outside")
        for each in (workspace, outside):
            each.mkdir()
        (outside / "secret").write_text(token)
        output = bytearray()
        try:
            await sandbox.run(
                SandboxCommand(
                    ("bash", "--noprofile", "--norc", "-c", _SCRIPT),
                    str(workspace),
                    _TIMEOUT_SECONDS,
                    PROBE_SESSION,
                    environment={
                        "WORKSPACE": str(workspace),
                        "OUTSIDE": str(outside),
                        "TCP": _port(services, "tcp"),
                        "TCP_6": _port(services, "tcp6"),
                        "UDP": _port(services, "udp"),
                        "ABSTRACT": token,
                        "GATEWAY": str(os.getpid()),
                        "STARTED": _start_time(),
                        "TOKEN": token,
                    },
                    access=FileAccess(writable=(str(workspace),)),
                ),
                output.extend,
            )
        except ToolError as error:
            return [Wall("start", _SENTENCES["start"], holds=False, reason=str(error))]
        possible = set(output.decode(errors="replace").split())
        possible |= {name for name, service in services.items() if _was_reached(service)}
        possible |= await asyncio.to_thread(_traces, workspace, outside, token)
        if await asyncio.to_thread(_password_file) in possible:
            possible.add("read-passwords")
    return list(_walls(possible))


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


def _traces(workspace: Path, outside: Path, token: str) -> set[str]:
    """Return what the script has done, as seen from the outside."""
    found = set()
    if not (workspace / "written").exists():
        found.add("no-workspace")
    if (outside / "written").exists():
        found.add("write-outside")
    if _has_process_with(token):
        found.add("survival")
    return found


def _password_file() -> str | None:
    """Return the digest of the password file of the machine; None if only others may read it."""
    try:
        return hashlib.sha256(Path("/etc/shadow").read_bytes()).hexdigest()
    except OSError:
        return None


def _start_time() -> str:
    """Return when this process started, in clock ticks; no other has the same with the same id."""
    return Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19]


def _has_process_with(token: str) -> bool:
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            if token.encode() in process.read_bytes():
                return True
        except OSError:
            continue
    return False


def _walls(possible: set[str]) -> Iterable[Wall]:
    for name, sentence in _SENTENCES.items():
        if name in _EXPECTED:
            holds = name in possible and "no-workspace" not in possible
        else:
            holds = name not in possible
        yield Wall(name, sentence, holds)
