"""Keeps commands from configuring the repositories of a workspace.

Git must write in its folder, so a command can as well. Files that git only reads are mounted
read-only. Missing ones are created for this purpose, folders permanently and files for as long as a
command runs; git treats them as if they were absent.
"""

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from internal.agent.domain.permissions.configuration_names import GIT_CONFIGURATION
from internal.open_files.paths import open_components, open_folder
from internal.tools.commands.configuration_search import FoundConfiguration

MAX_PROTECTED = 64
"""Repositories below one folder that are protected, those near the top first."""

ADVICE = (
    "[what configures git (.git/config, hooks, info, modules, worktrees) cannot be changed or"
    " removed by a command in this folder, because git runs programs that are named there. Commits"
    " and branches are not affected. Ask the person to do it, or pass a setting with"
    " `git -c NAME=VALUE`]"
)
"""Message for a command that failed because of the protection."""

_LOCK = "commondir"
_PLACEHOLDERS: Mapping[str, bytes] = {_LOCK: b".\n", "config": b"", "config.worktree": b""}
_FOLDERS = tuple(name for name in GIT_CONFIGURATION if name not in _PLACEHOLDERS)
_FILES_ELSEWHERE = re.compile(
    rb"\bworktree\s*=|\bbare\s*(?:=\s*(?:true|yes|on|1)\b|$)", re.IGNORECASE | re.MULTILINE
)
_MAX_CONFIG_BYTES = 65_536
_FAILURES = ("Device or resource busy", "Read-only file system")
_NAMES = (".git", *(f"/{name}" for name in GIT_CONFIGURATION))


def is_kept_from_git(output: str) -> bool:
    """Return True if the output of a command shows that it could not change a protected file."""
    return any(
        any(failure in line for failure in _FAILURES) and any(name in line for name in _NAMES)
        for line in output.splitlines()
    )


class GitFolders:
    """The repositories of some folders, protected until they are released.

    `read_only` are the paths that commands may not change.

    Args:
        found: the repositories below each folder.
    """

    def __init__(self, found: Mapping[str, FoundConfiguration]) -> None:
        self.read_only: tuple[str, ...] = ()
        self._locks: list[tuple[str, tuple[str, ...], int]] = []
        try:
            for root, below in found.items():
                for path in list(_outermost(below.repositories))[:MAX_PROTECTED]:
                    self._protect(root, path)
        except BaseException:
            self.release()
            raise

    def _protect(self, root: str, path: str) -> None:
        place = os.path.normpath(f"{root}/{path}")
        parts = tuple(part for part in path.split("/") if part != ".")
        if os.path.isfile(place):  # noqa: PTH113 - text; it names the folder of the repository
            self.read_only += (place,)
            return
        self.read_only += tuple(f"{place}/{name}" for name in GIT_CONFIGURATION)
        try:
            folder = _open(root, parts)
        except OSError:  # a link: the sandbox finds out where it leads
            return
        try:
            # in a bare repository, or one whose files are elsewhere, `commondir` has a meaning
            if parts[-1:] != (".git",) or _names_files(folder):
                return
            with suppress(OSError):  # one that this process cannot change, no command can
                self._locks.append((root, parts, _lock(folder)))
                for name in _FOLDERS:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=folder)
        finally:
            os.close(folder)

    def release(self) -> None:
        """Remove the files that were made, unless other commands need them. Blocks."""
        while self._locks:
            root, parts, lock = self._locks.pop()
            try:
                with suppress(OSError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    folder = _open(root, parts)
                    try:
                        _remove_placeholders(folder, lock)
                    finally:
                        os.close(folder)
            finally:
                os.close(lock)


def _outermost(repositories: Sequence[str]) -> Iterable[str]:
    """Leave out repositories of submodules, which are in a protected folder of another one."""
    modules = tuple(f"{path}/modules/" for path in repositories)
    return (path for path in repositories if not path.startswith(modules))


def _open(root: str, parts: tuple[str, ...]) -> int:
    """Open a folder without following links below the root.

    Raises:
        OSError: it is none.
    """
    with open_folder(root, follows_link=True) as above:
        return open_components(above, parts, os.O_RDONLY | os.O_DIRECTORY)


def _names_files(folder: int) -> bool:
    """Return True if the configuration of a repository sets the place of its files."""
    try:
        file = os.open("config", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return False
    try:
        return _FILES_ELSEWHERE.search(os.read(file, _MAX_CONFIG_BYTES)) is not None
    finally:
        os.close(file)


def _lock(folder: int) -> int:
    """Make the placeholders and return a descriptor that keeps them, however many commands run.

    Raises:
        OSError: they cannot be made.
    """
    while True:
        for name, content in _PLACEHOLDERS.items():
            _create(folder, name, content)
        lock = os.open(_LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if _is_same(folder, lock):
                for name, content in _PLACEHOLDERS.items():
                    _create(folder, name, content)
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)  # removed by a command that has just ended


def _create(folder: int, name: str, content: bytes) -> None:
    """Make a file with its content at once, unless there is one: git may read it at any moment."""
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        return
    new = f".larkspur-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    file = os.open(new, flags, 0o666, dir_fd=folder)
    try:
        os.write(file, content)
        with suppress(FileExistsError):
            os.link(new, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(file)
        os.unlink(new, dir_fd=folder)


def _remove_placeholders(folder: int, lock: int) -> None:
    if not _is_same(folder, lock):
        return
    for name, content in sorted(_PLACEHOLDERS.items(), reverse=True):  # the locked one last
        with suppress(OSError):
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            try:
                is_file = stat.S_ISREG(os.fstat(file).st_mode)
                if is_file and os.read(file, len(content) + 1) == content:
                    os.unlink(name, dir_fd=folder)
            finally:
                os.close(file)


def _is_same(folder: int, lock: int) -> bool:
    """Return True while the locked file is the one in the folder."""
    try:
        status = os.stat(_LOCK, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(status, os.fstat(lock))
