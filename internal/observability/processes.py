"""The processes of the machine, and whether they live."""

import os
import re
import socket
from pathlib import Path

from internal.agent.ports.runtime import ProcessIdentity
from internal.config.process_start import find_start


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
