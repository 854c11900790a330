"""The files of Larkspur itself, which no tool opens: its home folder, its settings, its database.

They are known by device and inode, not by name: a symbolic link, a hard link, a bind mount or other
letter case leads to the same file.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_FileId = tuple[int, int]


def _file_id(status: os.stat_result) -> _FileId:
    return status.st_dev, status.st_ino


def _id_of(path: str) -> _FileId:
    return _file_id(os.stat(path))  # noqa: PTH116 - takes half the time of pathlib


def _ids_of(paths: Iterable[str]) -> Iterator[_FileId]:
    for path in paths:
        with contextlib.suppress(OSError):
            yield _id_of(path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class ProtectedPaths:
    """The paths that no tool opens. May be used in several threads.

    Args:
        home: a folder; it and everything below it are protected, wherever its links lead.
        files: other files, which need not exist yet.
        session_folders: folders in `home` with one folder per session. Such a folder may be a
            workspace; for other workspaces it is protected as the rest of `home`.
    """

    def __init__(
        self, home: Path, *, files: Iterable[Path] = (), session_folders: Iterable[Path] = ()
    ) -> None:
        self._home = str(home)
        self._files = [
            str(each)
            for file in files
            for each in {file, file.resolve()}
            if each.parent.resolve() != home.resolve()  # else found in `home`
        ]
        self._session_folders = [str(folder) for folder in session_folders]
        self._entries: tuple[tuple[_FileId, int], frozenset[_FileId], list[str]] | None = None

    def protection(self, root: str) -> "Protection":
        """Return the files that are protected now, for one call in the workspace `root`."""
        return Protection(self, self._ids(), root)

    def is_session_folder(self, path: str) -> bool:
        """Return True for the folder of a session."""
        above = {*_ids_of([_parent(path)])}
        return not above.isdisjoint(_ids_of(self._session_folders))

    def is_file_name(self, folder: os.stat_result, name: str) -> bool:
        """Return True for the name of a protected file in an open folder, in any letter case."""
        return any(
            file.rpartition("/")[2].casefold() == name.casefold()
            and _file_id(folder) in _ids_of([_parent(file)])
            for file in self._files
        )

    def linked_ids(self) -> frozenset[_FileId]:
        """Return the files below the home folder that have several hard links."""
        return frozenset(_linked_ids(self._home, set(self._session_folders)))

    def _ids(self) -> frozenset[_FileId]:
        """Return the home folder, its direct entries, and the other files."""
        try:
            home = os.stat(self._home)  # noqa: PTH116 - as above
        except OSError:
            return frozenset(_ids_of(self._files))
        version = _file_id(home), home.st_mtime_ns  # changes when an entry is added or replaced
        known = self._entries
        if known is None or known[0] != version:
            with os.scandir(self._home) as found:
                entries = {entry.path: entry.is_symlink() for entry in found}
            ids = frozenset(_ids_of([self._home, *entries]))
            known = version, ids, [path for path, is_link in entries.items() if is_link]
            self._entries = known
        elsewhere = [*known[2], *self._files]
        return known[1].union(_ids_of(elsewhere)) if elsewhere else known[1]


class Protection:
    """The protected files at the beginning of a call."""

    def __init__(self, paths: ProtectedPaths, ids: frozenset[_FileId], root: str) -> None:
        self._paths = paths
        self._ids = ids
        self._root = root
        self._linked: frozenset[_FileId] | None = None
        self._folders: dict[str, bool] = {"/": False}

    def covers(self, path: str, status: os.stat_result) -> bool:
        """Return True if the file or folder at a real path, with this status, is protected.

        Raises:
            OSError: a folder above it is gone.
        """
        if _file_id(status) in self._ids:
            return True
        if stat.S_ISDIR(status.st_mode):
            return self._covers_folder(path)
        is_linked = status.st_nlink > 1 and self._is_linked(status)
        return is_linked or self._covers_folder(_parent(path))

    def covers_new(self, folder_path: str, folder: os.stat_result, name: str) -> bool:
        """Return True if a new file with this name in an open folder would be protected.

        Raises:
            OSError: a folder above it is gone.
        """
        return self.covers(folder_path, folder) or self._paths.is_file_name(folder, name)

    def _covers_folder(self, path: str) -> bool:
        passed: list[str] = []
        while (covered := self._folders.get(path)) is None:
            if _id_of(path) in self._ids:
                covered = not self._is_session_folder(passed)
                break
            passed.append(path)
            path = _parent(path)
        self._folders.update(dict.fromkeys(passed, covered))
        return covered

    def _is_session_folder(self, folders: list[str]) -> bool:
        """Return True if the workspace is the folder of a session and one of these folders."""
        root = os.path.realpath(self._root)
        return root in folders and self._paths.is_session_folder(root)

    def _is_linked(self, status: os.stat_result) -> bool:
        if self._linked is None:
            self._linked = self._paths.linked_ids()
        return _file_id(status) in self._linked


def _linked_ids(folder: str, skipped: set[str]) -> Iterator[_FileId]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.path not in skipped:
                    yield from _linked_ids(entry.path, skipped)
            else:
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_nlink > 1:
                        yield _file_id(status)
