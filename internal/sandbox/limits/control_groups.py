"""Control groups of Linux: bounds for all processes of a command together, and for all commands.

Where this process may create control groups (version 1 or 2; usually as root), each command gets
its own, inside a group that bounds all commands to less than Larkspur itself may use. Elsewhere
only the bounds per process and user in `resource_limits` apply.
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
    "cpu": ("cpu.weight", "cpu.shares"),
}
_WORDS = {"memory": "memory", "pids": "processes", "cpu": "processors"}
_ALL_MEMORY, _ALL_PROCESSES = 0.75, 4
"""Limits of all commands: a share of the memory, and this many times the processes of one."""
_CPU_WEIGHTS = {"cpu.weight": 25, "cpu.shares": 256}
"""A quarter of the share of other groups, such as Larkspur's, when all want the processors."""
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
        """Return the prefix of a command line that makes the command join the group."""
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
        memory_bytes: bound of the memory of a command, including its files in /tmp.
        processes: bound of its processes and threads.
    """

    def __init__(self, memory_bytes: int, processes: int) -> None:
        self._bounds: dict[str, int] = {"memory": memory_bytes, "pids": processes}
        self._parents = self._create_parents()
        self._ended: list[ControlGroup] = []

    @property
    def resources(self) -> frozenset[str]:
        """The resources that can be bounded, of "memory", "pids" and "cpu".

        The last one for all commands together only, the others for each command as well.
        """
        return frozenset(itertools.chain.from_iterable(self._parents.values()))

    @property
    def bounds_commands(self) -> bool:
        """Whether the memory and the processes of each command are bounded."""
        return {"memory", "pids"} <= self.resources

    @property
    def bounded_together(self) -> tuple[str, ...]:
        """The names of the resources that are bounded for all commands together."""
        return tuple(word for resource, word in _WORDS.items() if resource in self.resources)

    def create(self) -> ControlGroup:
        """Return a new group; it is empty where none can be created."""
        number = next(_numbers)
        folders = []
        for parent, resources in self._parents.items():
            folder = parent / str(number)
            with contextlib.suppress(OSError):
                folder.mkdir()
                for resource in resources:
                    if resource in self._bounds:
                        _bound(folder, resource, self._bounds[resource])
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

    def _create_parents(self) -> dict[Path, list[str]]:
        """Create a group of this process for each hierarchy, and return its resources."""
        parents: dict[Path, list[str]] = {}
        for resource, names in _FILES.items():
            for own in _own_folders(resource):
                _remove_stale(own)
                folder = own / f"{_prefix()}{os.getpid()}"
                with contextlib.suppress(OSError):
                    folder.mkdir(exist_ok=True)
                    if any((folder / name).exists() for name in names):
                        self._bound_all(folder, resource, own)
                        parents.setdefault(folder, []).append(resource)
                        break
                    folder.rmdir()
        return parents

    def _bound_all(self, folder: Path, resource: str, own: Path) -> None:
        """Bound all commands together, and let each be bounded below."""
        if resource == "cpu":
            for name, weight in _CPU_WEIGHTS.items():
                _write(folder / name, str(weight))
            return
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        most = machine if resource == "memory" else _ALL_PROCESSES * self._bounds["pids"] * 2
        for name in _FILES[resource]:
            limit = "".join(_read_words(f"{own}/{name}"))
            most = min(most, int(limit)) if limit.isdigit() else most
        share = _ALL_MEMORY if resource == "memory" else 0.5
        _bound(folder, resource, int(most * share))
        _write(folder / "cgroup.subtree_control", f"+{resource}")


def _bound(folder: Path, resource: str, value: int) -> None:
    for name in dict.fromkeys(_FILES[resource]):
        _write(folder / name, str(value))


def _write(file: Path, text: str) -> None:
    """Write to a file of the kernel, if it exists in this version."""
    if file.exists():
        file.write_text(text, encoding="ascii")


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


def _prefix() -> str:
    """Return how the groups of processes of this namespace begin: others use the same numbers."""
    return f"larkspur-{Path('/proc/self/ns/pid').stat().st_ino}-"


def _remove_stale(own: Path) -> None:
    """Remove the groups of gateways that have been killed."""
    for folder in own.glob(f"{_prefix()}*"):
        pid = folder.name.removeprefix(_prefix())
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
