"""Sentences for errors of the operating system that people can do something about."""

import errno
import os

NO_DESCRIPTORS = (
    "The machine has no free file descriptors. Close other programs, or raise the limit of open"
    " files (ulimit -n)."
)
_DISK_FULL = "The disk is full. Free some space and try again."
_SENTENCES = {
    errno.EMFILE: NO_DESCRIPTORS,
    errno.ENFILE: NO_DESCRIPTORS,
    errno.ENOSPC: _DISK_FULL,
    errno.EDQUOT: _DISK_FULL,
}


def is_shortage(error: Exception) -> bool:
    """Return True if the machine lacks something that may be free again later."""
    return isinstance(error, OSError) and error.errno in _SENTENCES


def describe_system_error(error: OSError) -> str:
    """Return a sentence for an error of the operating system."""
    if sentence := _SENTENCES.get(error.errno or 0):
        return sentence
    reason = error.strerror or str(error) or type(error).__name__
    return f"{reason}: {error.filename}." if error.filename else f"{reason}."


def check_descriptors(count: int) -> None:
    """Check that so many files can be opened.

    Raises:
        OSError: they cannot.
    """
    opened: list[int] = []
    try:
        for _ in range(count):
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))  # noqa: PERF401 - those before a failure are closed
    finally:
        for descriptor in opened:
            os.close(descriptor)
