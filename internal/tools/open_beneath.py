"""Opening files beneath a folder, so that no name, link or race leads out of it.

Linux does it in one step with openat2(2), RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS: symbolic
links are followed as long as they stay inside. Where the kernel or a container's filter does not
know the call, the path is walked component by component with O_NOFOLLOW: no symbolic link is
followed then.
"""

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Sequence

_OPENAT2 = 437  # the same number on every architecture but alpha
_RESOLVE = 0x08 | 0x02  # RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS (linux/openat2.h)
_RACES = 16  # EAGAIN: something was renamed while the kernel looked
_ALWAYS = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK  # a fifo must not hang the open


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


@functools.cache
def _syscall() -> ctypes.CDLL | None:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _openat2(folder: int, path: str, flags: int) -> int:
    """Open one path in the kernel.

    Raises:
        OSError: with ENOSYS where the call does not exist.
    """
    libc = _syscall()
    if libc is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    how = _How(flags, 0, _RESOLVE)
    for _ in range(_RACES):
        opened: int = libc.syscall(
            _OPENAT2, folder, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)
        )
        if opened >= 0:
            return opened
        if (number := ctypes.get_errno()) not in {errno.EAGAIN, errno.EINTR}:
            raise OSError(number, os.strerror(number), path)
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)


def walk(folder: int, parts: Sequence[str], flags: int) -> int:
    """Open a path component by component, following no symbolic link.

    Raises:
        OSError: as open(2); ELOOP or ENOTDIR at a symbolic link.
    """
    here = os.dup(folder)
    for number, part in enumerate(parts or (".",), start=1):
        last = number >= len(parts)
        wanted = flags if last else os.O_RDONLY | os.O_DIRECTORY
        try:
            opened = os.open(part, wanted | os.O_NOFOLLOW | _ALWAYS, dir_fd=here)
        finally:
            os.close(here)
        here = opened
    return here


def open_beneath(folder: int, parts: Sequence[str], flags: int) -> int:
    """Open what stands at `parts` beneath an open folder. `parts` holds plain names, never `..`.

    Raises:
        OSError: as open(2); EXDEV when a symbolic link leads outside.
    """
    try:
        return _openat2(folder, "/".join(parts) or ".", flags | _ALWAYS)
    except OSError as error:
        if error.errno not in {errno.ENOSYS, errno.EPERM, errno.E2BIG}:
            raise
    return walk(folder, parts, flags)
