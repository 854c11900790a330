"""Paths opened so that no symbolic link leads elsewhere.

On Linux, openat2(2) decides while the kernel resolves the path. Where the kernel or a container's
seccomp filter lacks the call, the path is opened component by component with O_NOFOLLOW.
"""

import ctypes
import errno
import fcntl
import functools
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

_OPENAT2 = 437  # on every architecture except alpha
# linux/openat2.h
_NO_MAGICLINKS = 0x02
_NO_SYMLINKS = 0x04
_BENEATH = 0x08
_MAX_RETRIES = 16  # EAGAIN: a concurrent rename
_OPEN_FLAGS = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK  # opening a fifo must not block
O_PATH = getattr(os, "O_PATH", 0)  # of Linux: opens a folder that may be passed, but not be read
_NOT_AVAILABLE = frozenset({errno.ENOSYS, errno.EPERM, errno.E2BIG})


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


@functools.cache
def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _openat2(folder: int, path: str, flags: int, resolve: int) -> int:
    """Open a path with openat2(2).

    Raises:
        OSError: as open(2); ENOSYS where the call does not exist.
    """
    libc = _libc()
    if libc is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    # Unlike open(2), the call refuses flags that have no effect beside O_PATH.
    if flags & O_PATH:
        flags &= O_PATH | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW
    how = _OpenHow(flags, 0, resolve)
    for _ in range(_MAX_RETRIES):
        opened: int = libc.syscall(
            _OPENAT2, folder, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)
        )
        if opened >= 0:
            return opened
        if (number := ctypes.get_errno()) not in {errno.EAGAIN, errno.EINTR}:
            raise OSError(number, os.strerror(number), path)
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)


def open_components(folder: int, parts: Sequence[str], flags: int) -> int:
    """Open a path component by component without following symbolic links.

    Raises:
        OSError: as open(2); ELOOP or ENOTDIR at a symbolic link.
    """
    here = os.dup(folder)
    for number, part in enumerate(parts or (".",), start=1):
        last = number >= len(parts)
        wanted = flags if last else O_PATH | os.O_DIRECTORY
        try:
            opened = os.open(part, wanted | os.O_NOFOLLOW | _OPEN_FLAGS, dir_fd=here)
        finally:
            os.close(here)
        here = opened
    if flags & O_PATH and stat.S_ISLNK(os.fstat(here).st_mode):  # which O_PATH opens itself
        os.close(here)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), parts[-1])
    return here


def open_beneath(folder: int, parts: Sequence[str], flags: int) -> int:
    """Open the path `parts` below an open folder. `parts` are plain names, never `..`.

    Symbolic links are followed as long as they stay below the folder, none where openat2(2) is not
    available.

    Raises:
        OSError: as open(2); EXDEV if a symbolic link leads outside.
    """
    try:
        path = "/".join(parts) or "."
        return _openat2(folder, path, flags | _OPEN_FLAGS, _BENEATH | _NO_MAGICLINKS)
    except OSError as error:
        if error.errno not in _NOT_AVAILABLE:
            raise
    return open_components(folder, parts, flags)


def open_without_links(path: str, flags: int) -> int:
    """Open an absolute path in which no component is a symbolic link.

    Raises:
        OSError: as open(2); ELOOP or ENOTDIR at a symbolic link.
    """
    try:
        return _openat2(-1, path, flags | _OPEN_FLAGS, _NO_SYMLINKS)
    except OSError as error:
        if error.errno not in _NOT_AVAILABLE:
            raise
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return open_components(root, [part for part in path.split("/") if part], flags)
    finally:
        os.close(root)


def real_path(descriptor: int) -> str:
    """Return the path of an open file without symbolic links, as the kernel knows it.

    Raises:
        OSError: it cannot be determined, such as without /proc.
    """
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - half the time of pathlib


@contextmanager
def open_folder(
    path: str, parent: int | None = None, *, follows_link: bool = False
) -> Iterator[int]:
    """Open a folder, or one in an open folder, and close it at the end of the block.

    Its entries are reached from its descriptor, not by a path: a command may put a link in the
    place of a folder at any moment.

    Raises:
        OSError: the path is not a folder, or a link without `follows_link`.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    opened = os.open(path, flags if follows_link else flags | os.O_NOFOLLOW, dir_fd=parent)
    try:
        yield opened
    finally:
        os.close(opened)


def names_in(folder: int) -> list[str]:
    """Return the names in an open folder, in no order."""
    return os.listdir(folder)


def find_links(path: str) -> str:
    """Return "" for an absolute path that passes no symbolic link, else where it leads now.

    Raises:
        OSError: as open(2), but for a path at which nothing is.
    """
    try:
        os.close(open_without_links(path, O_PATH or os.O_RDONLY))
    except FileNotFoundError:
        return ""
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
            raise
        real = destination(path)
        return "" if real == path else real
    return ""


def destination(path: str) -> str:
    """Return the current target of a path; the path itself if a link changes meanwhile.

    A file opened later may be another one, so the result must not decide about rights.
    """
    try:
        return os.path.realpath(path)
    except OSError:  # realpath reads a link that has been replaced
        return path


def resolve_links(paths: Iterable[str]) -> dict[str, str]:
    """Return the normal forms of paths that may pass symbolic links, and where each leads now."""
    return {path: destination(path) for path in map(os.path.normpath, paths)}
