"""The folder that nothing leaves: every file a tool touches is opened through here.

A tool never sees a path as text: `WorkspacePath` can only be made by its parser, and only
`Workspace` opens it. All work is done on open descriptors (open, fstat, read; write beside, fsync,
rename in the same open folder), so what was checked is what is used.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from internal.agent.domain.errors import ToolError
from internal.tools.open_beneath import open_beneath

MAX_BYTES = 16 * 1024 * 1024
"""No file tool reads or writes more than this."""

_MAX_NAME = 255
_MAX_PATH = 4_000
_REASONS = {
    errno.ENOENT: "{} does not exist in the workspace",
    errno.EXDEV: "{} leads outside the workspace through a symbolic link",
    errno.ELOOP: "{} passes a symbolic link that cannot be followed",
    errno.ENOTDIR: "{} is not a folder, or passes something that is none",
    errno.EISDIR: "{} is a folder",
    errno.ENXIO: "{} is not a regular file",
    errno.EACCES: "{} may not be opened: permission denied",
    errno.ENOSPC: "{} cannot be written: the disk is full",
    errno.EROFS: "{} cannot be written: the file system is read-only",
}


class PathNotFound(ToolError):
    """Nothing stands at a path of the workspace."""


class WorkspacePath:
    """A place in the workspace: plain names from its root on; none for the root itself.

    Not a dataclass: a decoder would build one from an object's fields and pass by the parser.
    """

    __slots__ = ("parts",)

    def __init__(self, *parts: str) -> None:
        self.parts = parts

    @classmethod
    def parse(cls, text: str, root: str) -> Self:
        """Read a path as a model writes it: from the root on, or absolute and beneath `root`.

        Raises:
            ToolError: empty, too long, not text, outside, or with `..`.
        """
        _check_text(text)
        if text.startswith("/"):
            text = _relative(text, root)
        parts = tuple(part for part in text.split("/") if part not in {"", "."})
        if ".." in parts:
            raise ToolError(f"{text!r} contains '..': write the path from the workspace's root on")
        if any(len(os.fsencode(part)) > _MAX_NAME for part in parts):
            raise ToolError(f"a name in the path is longer than {_MAX_NAME} bytes")
        return cls(*parts)

    def __str__(self) -> str:
        return "/".join(self.parts) or "."


def _check_text(text: str) -> None:
    if not text.strip():
        raise ToolError("the path is empty: '.' is the workspace itself")
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the path is not valid text") from error
    if b"\0" in encoded:
        raise ToolError("the path contains a NUL character")
    if len(encoded) > _MAX_PATH:
        raise ToolError(f"the path is longer than {_MAX_PATH} bytes")


def _relative(text: str, root: str) -> str:
    for known in (root, os.path.realpath(root)):
        folder = known.rstrip("/") + "/"
        if f"{text}/".startswith(folder):
            return text[len(folder) :] or "."
    raise ToolError(f"{text} is outside the workspace")


@dataclass(frozen=True, slots=True)
class FileContents:
    """What a file held, and the state in which it held it."""

    content: bytes
    identity: tuple[int, int, int, int]


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Workspace:
    """An existing folder. Its methods block; they are called in threads."""

    def __init__(self, root: str) -> None:
        self.root = root

    def parse(self, text: str) -> WorkspacePath:
        """Read a path that a model wrote.

        Raises:
            ToolError: it is none, or outside.
        """
        return WorkspacePath.parse(text, self.root)

    def read(self, path: WorkspacePath, limit: int = MAX_BYTES) -> FileContents:
        """Return a regular file's bytes.

        Raises:
            Missing: there is none.
            ToolError: no regular file, outside, or larger than `limit` bytes.
        """
        with self.opened(path) as descriptor:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise ToolError(f"{path} is a folder: use list_dir")
            if not stat.S_ISREG(status.st_mode):
                raise ToolError(f"{path} is not a regular file")
            with os.fdopen(os.dup(descriptor), "rb") as file:
                content = file.read(limit + 1)  # not st_size: a file may grow, /proc has none
        if len(content) > limit:
            raise ToolError(
                f"{path} is larger than {limit // 1024:,} KB: use search_files, or shell for a part"
            )
        return FileContents(content, _identity(status))

    @contextlib.contextmanager
    def opened(self, path: WorkspacePath, flags: int = os.O_RDONLY) -> Iterator[int]:
        """Open anything in the workspace: the descriptor is closed at the end.

        Raises:
            ToolError: it cannot be opened; also for an OSError inside the block.
        """
        with _explained(path), _folder(self.root) as root:
            descriptor = open_beneath(root, path.parts, flags)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def write(
        self, path: WorkspacePath, content: bytes, *, instead_of: FileContents | None = None
    ) -> bool:
        """Replace a file in one step, or create it and its folders; return whether it is new.

        Mode and owner of a replaced file are kept. Interrupted at any instant, either the old
        content or the new stands there.

        Raises:
            ToolError: outside, a symbolic link, no regular file, a file with several names (hard
                links), inside `.git`, or no longer the file that `instead_of` was read from.
        """
        if not path.parts:
            raise ToolError("the path names the workspace itself, not a file")
        if ".git" in (part.casefold() for part in path.parts):
            raise ToolError(f"{path} belongs to git, which may run what stands there: use git")
        with _explained(path), _folder(self.root) as root:
            folder = _make_folders(root, path.parts[:-1])
            try:
                before = _replaceable(folder, path)
                known = None if before is None else _identity(before)
                if instead_of is not None and known != instead_of.identity:
                    raise ToolError(f"{path} was changed meanwhile: read it again")
                _replace(folder, path.parts[-1], content, before)
            finally:
                os.close(folder)
        return before is None


@contextlib.contextmanager
def _explained(path: WorkspacePath) -> Iterator[None]:
    """Turn an OSError into the sentence that a model can use."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"{{}} cannot be used: {error.strerror}")
        kind = PathNotFound if error.errno == errno.ENOENT else ToolError
        raise kind(reason.format(path)) from error


@contextlib.contextmanager
def _folder(root: str) -> Iterator[int]:
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ToolError(f"the workspace {root} cannot be opened: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _make_folders(root: int, parts: tuple[str, ...]) -> int:
    """Open the folder at `parts`, making what is missing; the caller closes it."""
    here = os.dup(root)
    for number, part in enumerate(parts, start=1):
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=here)  # never follows a link: it exists, or it is ours
            opened = open_beneath(root, parts[:number], os.O_RDONLY | os.O_DIRECTORY)
        finally:
            os.close(here)
        here = opened
    return here


def _replaceable(folder: int, path: WorkspacePath) -> os.stat_result | None:
    """Return the state of the file to be replaced, None when there is none."""
    try:
        status = os.stat(path.parts[-1], dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise ToolError(f"{path} is a symbolic link: write to what it leads to")
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{path} is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{path} is not a regular file")
    if status.st_nlink > 1:
        raise ToolError(f"{path} has {status.st_nlink} names (hard links): it is not written to")
    return status


def _replace(folder: int, name: str, content: bytes, before: os.stat_result | None) -> None:
    """Write beside the file and rename over it; a rename follows no link."""
    beside = f".larkspur-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(beside, flags, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if before is not None:
                if before.st_uid != os.geteuid():
                    with contextlib.suppress(PermissionError):
                        os.fchown(descriptor, before.st_uid, before.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o777)
            os.fsync(descriptor)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise
