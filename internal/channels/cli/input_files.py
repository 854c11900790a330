"""Files that a person attaches to a task: checks, and reading in pieces. Standard library only."""

import mimetypes
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.channels.cli.output import print_error
from internal.channels.cli.task_request import decode_argument
from internal.normal_forms.names import names_like, spell_name

MAX_FILES = 50
"""Maximum number of files of a task."""
MAX_FILE_BYTES = 100_000_000
_CHUNK_BYTES = 256 * 1024
_HEAD_BYTES = 4_096
_UNKNOWN = "application/octet-stream"
_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
"""First bytes of files whose type is detected by content instead of name."""
_NOT_FILES = (
    (stat.S_ISDIR, "is a folder; attach its files, or an archive of it"),
    (stat.S_ISFIFO, "is a pipe; save its content to a file first"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)


class InputFile(NamedTuple):
    """A file to attach, on the disk at `path`, or with `content` if there is no path."""

    name: str
    media_type: str
    size: int
    path: str = ""
    content: bytes = b""

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces.

        Raises:
            CliExit: the file can no longer be read, or changes meanwhile.
        """
        if not self.path:
            yield self.content
            return
        descriptor = _open(self.path)
        try:
            before = os.fstat(descriptor)
            left = self.size if before.st_size == self.size else -1
            while left > 0 and (piece := os.read(descriptor, min(_CHUNK_BYTES, left))):
                left -= len(piece)
                if not left and _is_changed(before, os.fstat(descriptor)):
                    break
                yield piece
            else:
                if not left:
                    return
        except OSError as error:
            raise _unusable(self.path, f"cannot be read: {error.strerror}") from None
        finally:
            os.close(descriptor)
        raise _unusable(self.path, "changed while it was sent; try again")


def check_files(paths: Iterable[str]) -> tuple[InputFile, ...]:
    """Return the files to attach, each once; print a note if one is named twice.

    Raises:
        CliExit: a file cannot be attached, or there are too many.
    """
    found: dict[tuple[int, int], InputFile] = {}
    for path in paths:
        file, identity = _check(path)
        if identity in found:
            print_error(f"{decode_argument(path)} is attached once, though it is named twice.")
        found.setdefault(identity, file)
    if len(found) > MAX_FILES:
        raise CliExit(USAGE, f"{len(found)} files are too many: attach at most {MAX_FILES}.")
    return tuple(found.values())


def check_file(path: str) -> InputFile:
    """Return a file to attach.

    Raises:
        CliExit: it cannot be attached.
    """
    return _check(path)[0]


def existing_path(path: str, list_folder: Callable[[str], list[str]] = os.listdir) -> str:
    """Return the existing path whose names look the same as the given one, else the path itself.

    For many paths, pass a `list_folder` that caches the names.

    Raises:
        CliExit: several names in a folder look the same, and none is exactly the one in the path.
    """
    folder, name = os.path.split(path)
    if not name or "\0" in path or os.path.lexists(path):
        return path
    folder = existing_path(folder, list_folder)
    try:
        found = names_like(name, list_folder(folder or "."))
    except (OSError, ValueError):  # said when the file is opened
        return path
    if len(found) > 1:
        shown = ", ".join(map(spell_name, found))
        raise _unusable(path, f"is ambiguous: {shown} look the same")
    return os.path.join(folder, found[0] if found else name)  # noqa: PTH118 - without pathlib


def _open(path: str) -> int:
    """Open a regular file for reading; anything else is refused without waiting for it."""
    if "\0" in path:  # Python's own sentence depends on its version
        raise _unusable(path, "cannot be read: embedded null byte")
    try:
        # checked before as well: opening a device may have effects
        _check_kind(path, os.stat(path).st_mode)  # noqa: PTH116 - without the import of pathlib
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _unusable(path, "does not exist") from None
    except PermissionError:
        raise _unusable(path, "cannot be read: you have no permission") from None
    except (OSError, ValueError) as error:  # ValueError: a surrogate in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _unusable(path, f"cannot be read: {reason}") from None
    try:
        _check_kind(path, os.fstat(descriptor).st_mode)
    except CliExit:
        os.close(descriptor)
        raise
    return descriptor


def _check_kind(path: str, mode: int) -> None:
    for is_kind, problem in _NOT_FILES:
        if is_kind(mode):
            raise _unusable(path, problem)


def _check(path: str) -> tuple[InputFile, tuple[int, int]]:
    """Return a file, and its identity on this machine."""
    path = existing_path(path)
    descriptor = _open(path)
    try:
        status, head = os.fstat(descriptor), os.read(descriptor, _HEAD_BYTES)
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if not status.st_size:
        raise _unusable(path, "is empty")
    if status.st_size > MAX_FILE_BYTES:
        raise _unusable(path, f"is larger than {MAX_FILE_BYTES // 1_000_000} MB")
    name = decode_argument(os.path.basename(path)) or "file"  # noqa: PTH119 - without pathlib
    file = InputFile(name, media_type_of(name, head), status.st_size, path)
    return file, (status.st_dev, status.st_ino)


def media_type_of(name: str, head: bytes) -> str:
    """Return the media type of a file by its first bytes or its extension."""
    for start, media_type in _STARTS:
        if head.startswith(start):
            return media_type
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    known, encoding = mimetypes.guess_type(name)
    if known and not encoding:
        # a picture by name alone cannot be shown
        return _UNKNOWN if known in {"image/png", "image/jpeg", "image/gif"} else known
    return "text/plain" if _is_text(head) else _UNKNOWN


def _is_text(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"  # a character was cut
    return b"\0" not in head


def _is_changed(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)


def _unusable(path: str, problem: str) -> CliExit:
    return CliExit(USAGE, f"The file {decode_argument(path)} {problem}.")
