"""JSON files in the home folder that processes share."""

import contextlib
import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple


class FileVersion(NamedTuple):
    """Metadata that changes with a file, which is never written in place. Zeros if missing."""

    inode: int = 0
    changed_ns: int = 0
    size: int = 0


def version_of(path: Path) -> FileVersion:
    """Return the version of a file."""
    try:
        found = path.stat()
    except OSError:
        return FileVersion()
    return FileVersion(found.st_ino, found.st_mtime_ns, found.st_size)


def read_json(path: Path, max_bytes: int) -> Any:
    """Return the value in a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a regular file, too large, or not JSON.
    """
    try:
        return json.loads(_read(path, max_bytes))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_text(path: Path, max_bytes: int) -> str:
    """Return the text in a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a regular file, too large, or not UTF-8.
    """
    try:
        return _read(path, max_bytes).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 (byte {error.start})") from None


def read_start(path: Path, max_chars: int) -> str:
    """Return the start of the text in a file, "" if it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(max_chars)
    except OSError:
        return ""


def _read(path: Path, max_bytes: int) -> bytes:
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ValueError("it is not a file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"it is larger than {max_bytes:,} bytes")
    return content


def write_json(path: Path, value: Any) -> None:
    """Replace a file atomically; it has mode 600.

    Raises:
        OSError: it cannot be written; it is not changed.
    """
    descriptor, draft = tempfile.mkstemp(prefix=f"{path.name}-", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
            file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Let one process at a time read, change and replace a file.

    Raises:
        OSError: the lock cannot be created.
    """
    with path.with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
