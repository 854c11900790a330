"""The folder in which tools leave files for people, listed without following any link.

The functions block: call them in a thread. Commands of the agent may change the folder at any
moment, so every file is opened below an open folder and checked once it is open.
"""

import errno
import os
import stat
import time
from typing import NamedTuple

MAX_ENTRIES = 10_000
MAX_DEPTH = 8
MAX_SCAN_SECONDS = 2.0

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TEMPORARY_STARTS = (".", "~$")
_TEMPORARY_ENDS = (".tmp", ".part")
_LINK = "a symbolic link"


class OutputFile(NamedTuple):
    """A file: its path in the folder, and its identity, which changes with its content."""

    path: str
    identity: str


class OutputScan(NamedTuple):
    """The files of the folder in order of their paths, and the reasons for those left out by path.

    `is_complete` is False if the folder is too large to look at all of it.
    """

    files: tuple[OutputFile, ...]
    ignored: dict[str, str]
    is_complete: bool = True


class OutputFileIgnored(Exception):
    """A file is not for people, or cannot be read; the message is the reason."""


def output_exists(folder: str) -> bool:
    """Return True if there is anything at the path of a folder; takes microseconds."""
    return os.path.lexists(folder)


def scan_output(folder: str, *, since_ns: int = 0) -> OutputScan:
    """Return the files in a folder and below it; no files if it does not exist.

    Hidden and temporary files are left out without a reason, and so are files that did not change
    since a moment, in ns since 1970.
    """
    try:
        opened = os.open(folder, _FOLDER_FLAGS)
    except FileNotFoundError:
        return OutputScan((), {})
    except OSError as error:
        return OutputScan((), {"": _reason(error)})
    scanner = _Scanner(since_ns)
    try:
        scanner.scan(opened, "", 1)
    except OSError as error:
        scanner.ignored[""] = _reason(error)
    finally:
        os.close(opened)
    return OutputScan(tuple(sorted(scanner.files)), scanner.ignored, scanner.is_complete)


def open_output(folder: str, path: str) -> tuple[int, str]:
    """Open a file of the folder; return the descriptor, which the caller closes, and its identity.

    Raises:
        OutputFileIgnored: it is gone, cannot be read, or is no file for people any more.
    """
    *folders, name = path.split("/")
    try:
        here = os.open(folder, _FOLDER_FLAGS)
        for each in folders:
            here = _open_in(here, each, _FOLDER_FLAGS)
        opened = _open_in(here, name, _FILE_FLAGS)
    except OSError as error:
        raise OutputFileIgnored(_reason(error)) from error
    status = os.fstat(opened)
    if reason := _unsuitable(status):
        os.close(opened)
        raise OutputFileIgnored(reason)
    return opened, _identity(status)


class _Scanner:
    """Collects the files of one scan, within the limits of a scan."""

    def __init__(self, since_ns: int) -> None:
        self._since_ns = since_ns
        self.files: list[OutputFile] = []
        self.ignored: dict[str, str] = {}
        self.is_complete = True
        self._entries = 0
        self._deadline = time.monotonic() + MAX_SCAN_SECONDS

    def scan(self, folder: int, prefix: str, depth: int) -> None:
        """Collect the files of an open folder and of those below it."""
        with os.scandir(folder) as entries:
            for entry in entries:
                if not self._may_continue():
                    return
                if not _is_temporary(entry.name):
                    self._add(folder, entry.name, f"{prefix}{entry.name}", depth)

    def _may_continue(self) -> bool:
        self._entries += 1
        if self._entries > MAX_ENTRIES or time.monotonic() > self._deadline:
            self.is_complete = False
        return self.is_complete

    def _add(self, folder: int, name: str, path: str, depth: int) -> None:
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                self._scan_folder(folder, name, path, depth)
                return
        except FileNotFoundError:
            return  # removed meanwhile
        except OSError as error:
            self.ignored[path] = _reason(error)
            return
        # not the time of the content, which programs set, such as archivers
        if status.st_ctime_ns < self._since_ns:
            return
        if reason := _unsuitable(status):
            self.ignored[path] = reason
        else:
            self.files.append(OutputFile(path, _identity(status)))

    def _scan_folder(self, parent: int, name: str, path: str, depth: int) -> None:
        if depth == MAX_DEPTH:
            self.ignored[path] = f"deeper than {MAX_DEPTH} folders"
            return
        opened = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
        try:
            self.scan(opened, f"{path}/", depth + 1)
        finally:
            os.close(opened)


def _open_in(folder: int, name: str, flags: int) -> int:
    """Open an entry of an open folder, and close the folder."""
    try:
        return os.open(name, flags, dir_fd=folder)
    finally:
        os.close(folder)


def _is_temporary(name: str) -> bool:
    return name.startswith(_TEMPORARY_STARTS) or name.lower().endswith(_TEMPORARY_ENDS)


def _identity(status: os.stat_result) -> str:
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def _unsuitable(status: os.stat_result) -> str:
    """Return why a file is not for people, "" if it may be."""
    if stat.S_ISLNK(status.st_mode):
        return _LINK
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    return "it has other names (hard links)" if status.st_nlink != 1 else ""


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return _LINK
    if error.errno == errno.ENXIO:
        return "not a regular file"
    return (error.strerror or type(error).__name__).lower()
