"""Finds repositories and the files that configure agents and programs, below some folders.

A search takes place around each command, so it is bounded, and a folder that has not changed since
the last one is not read again. It goes by open folders and leaves no folder through a link.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from internal.agent.domain.permissions.configuration_names import CONFIGURATION_NAMES
from internal.git.process import GitFailed, run_git
from internal.open_files.paths import open_beneath

MAX_FOLDERS = 2_000
"""Folders below one that are searched, those near the top first."""
MAX_REPOSITORIES = 200
"""Repositories below one folder that are found."""

_MAX_SEARCHED = 64  # folders whose searches are remembered
_MAX_ENTRIES = 400_000
_MAX_FOUND = 1_000
# A change in the same tick of the clock as a search does not change the times of a folder.
_TICK_NS = 100_000_000
_BARE = frozenset({"HEAD", "objects", "refs"})
"""With these, git takes a folder for a repository."""
_PACKAGES = frozenset({"node_modules", "site-packages"})
"""Folders of packages: their configuration files are not used, except by git."""
_GIT = ".git"
_SUBMODULE_MODE = (0o160000).to_bytes(4, "big")  # as it is in an index
_MAX_INDEX_BYTES = 64 * 1024 * 1024
_INDEX_TIMEOUT_SECONDS = 5.0
_NAMES = frozenset(each.casefold() for each in CONFIGURATION_NAMES if "/" not in each)
_NESTED = frozenset(each.casefold() for each in CONFIGURATION_NAMES if "/" in each)


class FoundConfiguration(NamedTuple):
    """Repositories and configuration below a folder; paths are relative to it.

    `repositories` are the folders in which git keeps its files, or files and links in their place;
    `files` are files and folders that configure. `unread` is the first folder that was not
    searched, because there are too many, "" if all were.
    """

    repositories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    unread: str = ""


class _Folder(NamedTuple):
    """The entries of a folder that matter, and the state in which it had them."""

    identity: tuple[int, ...]
    folders: tuple[str, ...]
    files: tuple[str, ...]
    has_git: bool
    is_bare: bool


class ConfigurationSearch:
    """Searches folders and caches their contents. May be used in several threads.

    A repository that was found once is found again, however many folders are created later.
    """

    def __init__(self) -> None:
        self._read: dict[str, dict[str, _Folder]] = {}
        self._known: dict[str, tuple[str, ...]] = {}
        self._staged: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {}

    def search(self, root: str) -> FoundConfiguration:
        """Return the repositories below a folder; nothing if it cannot be opened. Blocks."""
        try:
            opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return FoundConfiguration()
        try:
            walk = _Walk(root, opened, self._read.pop(root, {}))
            staged = self._staged_repositories(root, opened)
            found = walk.find((*self._known.get(root, ()), *staged))
        finally:
            os.close(opened)
        while len(self._read) >= _MAX_SEARCHED:
            oldest = next(iter(self._read), root)
            self._read.pop(oldest, None)
            self._known.pop(oldest, None)
            self._staged.pop(oldest, None)
        self._read[root], self._known[root] = walk.read, found.repositories
        return found

    def _staged_repositories(self, root: str, opened: int) -> tuple[str, ...]:
        """Return where the index of the repository has repositories: git enters these.

        They may be deeper than the search goes.
        """
        try:
            file = open_beneath(opened, (_GIT, "index"), os.O_RDONLY)
        except OSError:
            return ()
        try:
            identity = _identity(os.fstat(file))
            if root not in self._staged or self._staged[root][0] != identity:
                has_submodules = stat.S_ISREG(identity[0]) and _names_submodules(file)
                self._staged[root] = identity, _submodules(root) if has_submodules else ()
        finally:
            os.close(file)
        return self._staged[root][1]


class _Walk:
    """One search. `read` are the folders that it has read, by their paths."""

    def __init__(self, root: str, opened: int, before: dict[str, _Folder]) -> None:
        self._root, self._opened, self._before = root, opened, before
        self.read: dict[str, _Folder] = {}

    def find(self, known: tuple[str, ...]) -> FoundConfiguration:
        """Return the repositories that are found; `known` ones may still exist."""
        repositories = dict.fromkeys(each for each in known if self._exists(each))
        files: dict[str, None] = {}
        pending, packages = deque([""]), deque[str]()  # folders of packages come last
        entries = 0
        while queue := pending or packages:
            path = queue.popleft()
            if len(self.read) >= MAX_FOLDERS or entries >= _MAX_ENTRIES:
                return FoundConfiguration((*repositories,), (*files,), path)
            folder = self._folder(path)
            if folder is None:
                continue
            entries += len(folder.folders)
            if (folder.has_git or folder.is_bare) and len(repositories) < MAX_REPOSITORIES:
                repositories |= dict.fromkeys(_repositories(path, folder))
            if folder.files and queue is pending and len(files) < _MAX_FOUND:
                files |= dict.fromkeys(_join(path, name) for name in folder.files)
            for name in folder.folders:
                (packages if name in _PACKAGES else queue).append(_join(path, name))
            if folder.has_git:  # the repositories of submodules
                pending.append(_join(path, f"{_GIT}/modules"))
        return FoundConfiguration((*repositories,), (*files,))

    def _exists(self, path: str) -> bool:
        """Return True for a repository that is still there; its parents may be links by now."""
        parent, _, name = path.rpartition("/")
        try:
            folder = self._open(parent)
        except OSError:
            return False
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return False
        finally:
            os.close(folder)
        return True

    def _folder(self, path: str) -> _Folder | None:
        """Return the contents of a folder, None if it is not a folder or cannot be read."""
        before = self._before.get(path)
        if before is not None:
            try:
                # another folder in its place has another identity
                if _identity(os.lstat(f"{self._root}/{path}")) == before.identity:
                    self.read[path] = before
                    return before
            except OSError:
                return None
        try:
            folder = self._open(path)
        except OSError:
            return None
        try:
            found = _read_folder(folder, path)
        except OSError:
            return None
        finally:
            os.close(folder)
        self.read[path] = found
        return found

    def _open(self, path: str) -> int:
        parts = tuple(filter(None, path.split("/")))
        return open_beneath(self._opened, parts, os.O_RDONLY | os.O_DIRECTORY)


def _read_folder(folder: int, path: str) -> _Folder:
    """Return the entries of an open folder that matter.

    Raises:
        OSError: they cannot be read.
    """
    now = time.time_ns()
    status = os.fstat(folder)
    # one that has just changed is read again
    identity = _identity(status) if now - status.st_ctime_ns > _TICK_NS else ()
    above = path.rpartition("/")[2].casefold()
    folders: list[str] = []
    files: list[str] = []
    has_git, bare = False, set[str]()
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            folded = name.casefold()
            if folded == _GIT:
                has_git = True
            elif folded in _NAMES or f"{above}/{folded}" in _NESTED:
                files.append(name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(name)
            if name in _BARE:
                bare.add(name)
    if is_bare := bare == _BARE:
        folders = [name for name in folders if name != "objects"]
    return _Folder(identity, (*sorted(folders),), (*sorted(files),), has_git, is_bare)


def _names_submodules(index: int) -> bool:
    with os.fdopen(index, "rb", closefd=False) as file:
        return _SUBMODULE_MODE in file.read(_MAX_INDEX_BYTES)


def _submodules(root: str) -> tuple[str, ...]:
    """Return where git keeps the files of the submodules in the index of a repository."""
    try:
        listed = run_git(
            *("ls-files", "--stage", "-z"),
            folder=root,
            variables={"GIT_DIR": f"{root}/{_GIT}"},
            max_bytes=_MAX_INDEX_BYTES,
            timeout_seconds=_INDEX_TIMEOUT_SECONDS,
        )
    except (GitFailed, OSError):
        return ()
    rows = (row.split(b"\t", 1) for row in listed.split(b"\0") if row.startswith(b"160000 "))
    return tuple(f"{os.fsdecode(path)}/{_GIT}" for _, path in rows)[:MAX_REPOSITORIES]


def _repositories(path: str, folder: _Folder) -> Iterator[str]:
    if folder.has_git:
        yield _join(path, _GIT)
    if folder.is_bare:
        yield path or "."


def _identity(status: os.stat_result) -> tuple[int, ...]:
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return stat.S_IFMT(status.st_mode), status.st_dev, status.st_ino, *times


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
