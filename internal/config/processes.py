"""The processes of the machine: their start, and whether they live. Standard library only."""

import os
import re
import socket
from contextlib import suppress
from pathlib import Path

from internal.agent.domain.processes import ProcessIdentity

_ENDED = "ZX"  # states of a process that ended and was not reaped


def find_start(pid: int) -> str | None:
    """Return when a process started, as text that differs from an earlier process with this pid.

    "" if there is no such process or it has ended, None if it may not be inspected.
    """
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # the fields of proc(5) after the name, which may contain anything
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in _ENDED else fields[19]
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return ""
    except PermissionError:
        return None
    return ask_ps(pid) if not Path("/proc/self/stat").exists() else None


def ask_ps(pid: int) -> str | None:
    """Return what `find_start` does, on a system without /proc; None also if there is none."""
    # os.popen imports subprocess only here: `home`, which uses this module, must import fast
    with os.popen(f"LC_ALL=C TZ=UTC0 ps -o stat=,lstart= -p {pid:d} 2>/dev/null") as ps:  # noqa: S605 - no other input
        state, _, start = ps.read().strip().partition(" ")
    if not start:
        return None
    return "" if state[0] in _ENDED else start.strip()


class SystemProcesses:
    """The `Processes` of the machine."""

    def __init__(self) -> None:
        self._boot = _read("/proc/sys/kernel/random/boot_id")
        self._namespace = _namespace()
        self._host = socket.gethostname()

    def current(self, name: str) -> ProcessIdentity:
        """Return the identity of this process under a unique name."""
        pid = os.getpid()
        start = find_start(pid) or ""
        return ProcessIdentity(name, pid, start, self._namespace, self._boot, self._host)

    def is_alive(self, process: ProcessIdentity) -> bool | None:
        """Return whether a process lives, also while it is stopped.

        None if it cannot be known: it ran on another machine or in another container.
        """
        is_same_host = process.host == self._host
        if process.boot != self._boot:
            return False if is_same_host and process.boot and self._boot else None
        if process.namespace != self._namespace or not (self._boot or is_same_host):
            return None
        start = find_start(process.pid)
        return None if start is None else start == process.start != ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - not a path
    except OSError:
        return ""
