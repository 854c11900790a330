"""Runs a command whose `flock` calls are refused, as on a file system without locks.

Usage: python refused_locks.py COMMAND [ARGUMENT…]. Linux on x86-64 and arm64 only.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

_FLOCK = {"x86_64": 73, "aarch64": 32}
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse_flock() -> None:
    """Make every `flock` of this process and its children fail with ENOLCK (seccomp(2))."""
    instructions = b"".join(
        struct.pack("HBBI", *each)
        for each in (
            (_LOAD, 0, 0, 0),  # the number of the system call
            (_JUMP_IF_EQUAL, 0, 1, _FLOCK[platform.machine()]),
            (_RETURN, 0, 0, _ERRNO | errno.ENOLCK),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    program = _Program(len(instructions) // 8, instructions)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = (ctypes.c_int, *[ctypes.c_void_p] * 4)
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(
        _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    refuse_flock()
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - the command of the test
