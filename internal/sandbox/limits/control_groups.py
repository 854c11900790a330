"""Control groups of Linux: bounds of memory and processes for all processes of a command together.

Where this process may create control groups (version 1 or 2; usually as root), each command gets
its own. Elsewhere only the bounds of each process and user in `resource_limits` hold.
"""

import contextlib
import itertools
import os
from pathlib import Path

import msgspec

from internal.agent.ports.sandbox import Resource

_MOUNT = Path("/sys/fs/cgroup")
_FILES = {
    "memory": ("memory.max", "memory.limit_in_bytes"),
    "pids": ("pids.max", "pids.max"),
}
_EVENTS: tuple[tuple[str, str, Resource], ...] = (
    ("pids.events", "max", "processes"),
    ("memory.events", "oom_kill", "memory"),
    ("memory.oom_control", "oom_kill", "memory"),
)
_MAX_EVENT_BYTES = 4_096
_numbers = itertools.count(1)  # of this process: all `ControlGroups` share a parent folder
_JOIN = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift; exec "$@"'


class ControlGroup(msgspec.Struct, frozen=True):
    """The group of one command: a folder, or with version 1 a folder per resource."""

    folders: tuple[Path, ...]

    def arguments(self) -> list[str]:
        """Return the program and arguments that let what follows them join the group."""
        files = [str(file) for file in self.members()]
        return ["/bin/sh", "-c", _JOIN, "sh", *files, "--"] if files else []

    def members(self) -> list[Path]:
        """Return the files by which a process of one thread joins the group: it writes 0."""
        return [_join_file(folder) for folder in self.folders]

    def exceeded(self) -> Resource | None:
        """Return which bound was reached, if any."""
        for folder in self.folders:
            for name, key, resource in _EVENTS:
                words = _read_words(f"{folder}/{name}")
                if dict(zip(words[::2], words[1::2], strict=True)).get(key, "0") != "0":
                    return resource
        return None


class ControlGroups:
    """Creates the groups of commands below the group of this process.

    Args:
        memory_bytes: bound of the memory of a command, with what it writes to /tmp.
        processes: bound of its processes and threads.
    """

    def __init__(self, memory_bytes: int, processes: int) -> None:
        self._bounds = {"memory": memory_bytes, "pids": processes}
        self._parents = self._create_parents()
        self._ended: list[ControlGroup] = []

    @property
    def resources(self) -> frozenset[str]:
        """The resources that can be bounded: of "memory" and "pids"."""
        return frozenset(itertools.chain.from_iterable(self._parents.values()))

    def create(self) -> ControlGroup:
        """Return a new group; it is empty where none can be created."""
        number = next(_numbers)
        folders = []
        for parent, resources in self._parents.items():
            folder = parent / str(number)
            with contextlib.suppress(OSError):
                folder.mkdir()
                for resource in resources:
                    self._bound(folder, resource)
                folders.append(folder)
        return ControlGroup(tuple(folders))

    def remove(self, group: ControlGroup) -> None:
        """Remove the group of a command that has ended; one that is still busy, later."""
        self._ended = [each for each in (*self._ended, group) if not _remove(each.folders)]

    def close(self) -> None:
        """Remove everything that was created."""
        for group in self._ended:
            _remove(group.folders)
        _remove(tuple(self._parents))

    def _bound(self, folder: Path, resource: str) -> None:
        for name in dict.fromkeys(_FILES[resource]):
            file = folder / name
            if file.exists():
                file.write_text(str(self._bounds[resource]), encoding="ascii")

    def _create_parents(self) -> dict[Path, list[str]]:
        """Create a group of this process for each hierarchy, and return its resources."""
        parents: dict[Path, list[str]] = {}
        for resource in self._bounds:
            for own in _own_folders(resource):
                _remove_stale(own)
                folder = own / f"larkspur-{os.getpid()}"
                with contextlib.suppress(OSError):
                    folder.mkdir(exist_ok=True)
                    if any((folder / name).exists() for name in _FILES[resource]):
                        parents.setdefault(folder, []).append(resource)
                        break
                    folder.rmdir()
        return parents


def _join_file(folder: Path) -> Path:
    """Return the file that takes a thread (version 1), or the one that takes a process.

    The kernel moves the thread that writes at once. Before it moves a process it waits until none
    is being created: about 12 ms (a grace period of RCU).
    """
    threads = folder / "tasks"
    return threads if threads.exists() else folder / "cgroup.procs"


def _read_words(path: str) -> list[str]:
    """Return the words of a file of the kernel; none if it does not exist."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(file, _MAX_EVENT_BYTES).decode("ascii").split()
    except OSError:
        return []
    finally:
        os.close(file)


def _own_folders(resource: str) -> list[Path]:
    """Return the folders of this process's group in version 1 and in version 2."""
    folders = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if resource in controllers.split(","):
                folders.append(Path(f"{_MOUNT}/{resource}{path}"))
            elif not controllers:
                folders.append(Path(f"{_MOUNT}{path}"))
    return [folder for folder in folders if folder.is_dir()]


def _remove_stale(own: Path) -> None:
    """Remove the groups of gateways that have been killed."""
    for folder in own.glob("larkspur-*"):
        pid = folder.name.removeprefix("larkspur-")
        if pid.isdigit() and not Path("/proc", pid).exists():
            _remove((*folder.glob("[0-9]*"), folder))


def _remove(folders: tuple[Path, ...]) -> bool:
    """Remove folders; return False if one is still busy."""
    done = True
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            done = False
    return done
