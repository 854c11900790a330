"""The files below an open folder, found without following any link.

Commands may change the folder at any moment: every folder is opened below an open one, and an entry
is a descriptor and a name in it, never a path.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from internal.open_files.paths import real_path
from internal.tools.protected_paths import Protection

MAX_ENTRIES = 200_000
MAX_DEPTH = 64
MAX_WALK_SECONDS = 20.0

SKIPPED_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", ".tox", ".nox",
        ".mypy_cache", ".ruff_cache", ".pytest_cache", ".gradle", ".cache",
    }
)  # fmt: skip
"""Names of folders that are not entered: repositories, installed packages and caches."""
FOLDER_MARKS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
"""Files that mark the folder they are in as installed packages or a cache: it is not entered."""

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
TEMPORARY_PREFIX = ".larkspur-"


class FoundEntry(NamedTuple):
    """A regular file or a symbolic link: its name in an open folder, and its path from the root.

    Bytes that are not UTF-8 are surrogates in `path`, as from `os.fsdecode`.
    """

    folder: int
    name: str
    path: str
    status: os.stat_result


class WalkReport(NamedTuple):
    """The omissions of a walk.

    `unread` are the paths of folders that were not entered. `is_complete` is False if a limit
    ended the walk.
    """

    unread: frozenset[str]
    is_complete: bool


def walk(
    root: int,
    protection: Protection,
    visit: Callable[[FoundEntry], None],
    *,
    skipped: frozenset[str] = frozenset(),
) -> WalkReport:
    """Pass every file and link below an open folder to `visit`.

    Files of Larkspur itself, folders named in `SKIPPED_FOLDERS` and folders at the paths `skipped`
    are left out. An entry that is removed meanwhile is left out, too.

    Raises:
        OSError: the folder itself cannot be read.
    """
    walker = _Walker(protection, visit, skipped)
    walker.walk(root, real_path(root), "", 1)
    return WalkReport(frozenset(walker.unread), walker.is_complete)


class _Walker:
    """One walk, within its limits."""

    def __init__(
        self, protection: Protection, visit: Callable[[FoundEntry], None], skipped: frozenset[str]
    ) -> None:
        self.unread: set[str] = set()
        self.is_complete = True
        self._protection = protection
        self._visit = visit
        self._skipped = skipped
        self._entries = 0
        self._deadline = time.monotonic() + MAX_WALK_SECONDS

    def walk(self, folder: int, real: str, prefix: str, depth: int) -> None:
        """Visit the entries of an open folder and everything below it."""
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        if prefix and any(entry.name in FOLDER_MARKS for entry in entries):
            self.unread.add(prefix[:-1])
            return
        for entry in entries:
            if not self._may_continue():
                return
            path = prefix + entry.name
            try:
                status = entry.stat(follow_symlinks=False)
                if self._protection.covers(f"{real}/{entry.name}", status):
                    if stat.S_ISDIR(status.st_mode):
                        self.unread.add(path)
                    continue
            except OSError:  # removed meanwhile
                continue
            if stat.S_ISDIR(status.st_mode):
                if entry.name in SKIPPED_FOLDERS or path in self._skipped or depth == MAX_DEPTH:
                    self.unread.add(path)
                else:
                    self._enter(folder, f"{real}/{entry.name}", path, depth + 1)
            elif _is_listed(entry.name, status):
                self._visit(FoundEntry(folder, entry.name, path, status))

    def _may_continue(self) -> bool:
        self._entries += 1
        if self._entries > MAX_ENTRIES or time.monotonic() > self._deadline:
            self.is_complete = False
        return self.is_complete

    def _enter(self, parent: int, real: str, path: str, depth: int) -> None:
        try:
            folder = os.open(path.rpartition("/")[2], _FOLDER_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError:  # not readable, or something else by now
            self.unread.add(path)
            return
        try:
            self.walk(folder, real, f"{path}/", depth)
        except OSError:
            self.unread.add(path)
        finally:
            os.close(folder)


def _is_listed(name: str, status: os.stat_result) -> bool:
    is_kind = stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)
    return is_kind and not name.startswith(TEMPORARY_PREFIX)


@contextmanager
def open_parent(root: int, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder of a path below an open folder, following no link; yield it and the name.

    Raises:
        OSError: a folder is missing, which `create` makes, or is something else.
    """
    *folders, name = path.split("/")
    here = os.dup(root)
    try:
        for each in folders:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(each, dir_fd=here)
            opened = os.open(each, _FOLDER_FLAGS, dir_fd=here)
            os.close(here)
            here = opened
        yield here, name
    finally:
        os.close(here)
