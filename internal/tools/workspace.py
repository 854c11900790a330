"""The workspace: every file of a tool is opened through here, and never outside it.

Tools do not handle paths as text: only `Workspace.parse` creates a `WorkspacePath`, and only
`Workspace` opens one. All work is done on open descriptors (open, fstat, read; write a temporary
file, fsync, rename in the same open folder), so a check applies to the file that is used.

Symbolic links are followed as long as they stay inside; see `open_beneath`. The path of the
workspace itself passes none: a folder above it may be in the workspace of another session.

The files of Larkspur itself are refused inside the workspace too; see `protected_paths`.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from functools import cached_property
from io import FileIO
from typing import Self

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions import paths
from internal.agent.ports.attachments import FileFolders
from internal.normal_forms.names import fold_name, names_like, spell_name
from internal.open_files.paths import (
    O_PATH,
    find_links,
    names_in,
    open_beneath,
    open_without_links,
    real_path,
)
from internal.tools.protected_paths import ProtectedPaths, Protection

MAX_BYTES = 16 * 1024 * 1024
"""The largest file that a tool reads or writes."""

_NOT_REPLACEABLE = frozenset({errno.EBUSY, errno.EACCES, errno.EPERM, errno.EROFS})
"""Errors of a rename onto a mount point, or in a folder that may not be changed."""

_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4_000
_MAX_SHOWN_NAMES = 5
# expanded by shells at the beginning of a path; `~notes` and `~$notes.docx` are ordinary names
_EXPANDED_START = re.compile(r"~[a-z][\w-]*(?=/)|~|\$\{?[A-Z_][A-Z0-9_]*\}?|file:(?=/)")
_MESSAGES = {
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
    """The path does not exist in the workspace."""


class WorkspacePath:
    """A path in the workspace: the names below its root, none for the root itself.

    `outside` is the folder that contains the names if it is another one: the folder of the files
    that people sent, in a workspace that does not belong to the session.

    Not a dataclass: msgspec would decode one from an object and bypass the parser.
    """

    __slots__ = ("outside", "parts")

    def __init__(self, *parts: str, outside: str = "") -> None:
        self.parts = parts
        self.outside = outside

    @classmethod
    def parse(cls, text: str, root: str, outside: str = "") -> Self:
        """Parse a path from a model: relative to the root, or absolute and below `root`.

        An absolute path may also be below the folder `outside`.

        Raises:
            ToolError: the path is empty, too long, not valid text, outside or contains `..`.
        """
        _check_text(text)
        _check_start(text)
        is_outside = bool(outside) and f"{text}/".startswith(f"{outside}/")
        if text.startswith("/"):
            text = _relative(text, outside if is_outside else root)
        parts = tuple(part for part in text.split("/") if part not in {"", "."})
        if ".." in parts:
            raise ToolError(f"{text!r} contains '..': write the path from the workspace's root on")
        if any(len(os.fsencode(part)) > _MAX_NAME_BYTES for part in parts):
            raise ToolError(f"a name in the path is longer than {_MAX_NAME_BYTES} bytes")
        return cls(*parts, outside=outside if is_outside else "")

    def __str__(self) -> str:
        return "/".join((self.outside, *self.parts) if self.outside else self.parts) or "."


def _check_text(text: str) -> None:
    if not text.strip():
        raise ToolError("the path is empty: '.' is the workspace itself")
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the path is not valid text") from error
    if b"\0" in encoded:
        raise ToolError("the path contains a NUL character")
    if len(encoded) > _MAX_PATH_BYTES:
        raise ToolError(f"the path is longer than {_MAX_PATH_BYTES} bytes")


def _check_start(text: str) -> None:
    """Refuse an abbreviation in place of a name: it would become a folder of that name."""
    start = _EXPANDED_START.match(text)
    if start is not None and text[start.end() : start.end() + 1] in {"", "/"}:
        what = "the home folder" if text[0] == "~" else "a folder"
        raise ToolError(
            f"{text!r}: {start[0]!r} does not stand for {what} here. Write a path inside the"
            f" workspace, or ./{text} for what has exactly this name"
        )


def _relative(text: str, root: str) -> str:
    """Return the part of an absolute path after the root, which may only look the same."""
    folder = root.rstrip("/") + "/"
    depth = folder.count("/")
    names = f"{text}/".split("/")
    above = "/".join((*names[:depth], ""))
    if above == folder or fold_name(above) == fold_name(folder):
        return "/".join(names[depth:-1]) or "."
    raise ToolError(f"{text} is outside the workspace")


class FileContents(msgspec.Struct, frozen=True):
    """The content of a file and the identity of the version that was read."""

    content: bytes
    identity: tuple[int, int, int, int]


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Workspace:
    """An existing folder, for one tool call. The methods block: call them in a thread.

    Relative paths are in the workspace, as for commands. The folder of the files that people sent
    is reached by its absolute path if it is elsewhere; its files cannot be changed.

    Args:
        root: the path of the folder.
        protected: the files that are never opened, also inside the folder.
        folders: the folders of the session; None for a workspace without a session.
    """

    def __init__(
        self, root: str, protected: ProtectedPaths, folders: FileFolders | None = None
    ) -> None:
        self.root = root
        self.folders = folders
        self.outside = "" if folders is None or folders.are_together else folders.input
        """The folder of the files that people sent, "" if it is in the workspace."""
        self._protected = protected
        self._protections: dict[str, Protection] = {}

    @property
    def belongs_to_session(self) -> bool:
        """True for a folder of a session or a task in Larkspur's home: no person works there."""
        return self._protected.is_session_folder(self.root)

    def parse(self, text: str) -> WorkspacePath:
        """Parse a path from a model.

        Raises:
            ToolError: the path is not valid or outside.
        """
        return WorkspacePath.parse(text, self.root, self.outside)

    def root_of(self, path: WorkspacePath) -> str:
        """Return the folder that the names of a path are below."""
        return path.outside or self.root

    def read(self, path: WorkspacePath, limit: int = MAX_BYTES) -> FileContents:
        """Return the content of a regular file.

        Raises:
            PathNotFound: the file does not exist.
            ToolError: not a regular file, outside, protected, or larger than `limit` bytes.
        """
        with self.open(path) as descriptor:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise ToolError(f"{path} is a folder: use list_dir")
            if not stat.S_ISREG(status.st_mode):
                raise ToolError(f"{path} is not a regular file")
            with os.fdopen(os.dup(descriptor), "rb") as file:
                content = file.read(
                    limit + 1
                )  # not st_size: a file may grow, files in /proc report 0
        if len(content) > limit:
            raise ToolError(
                f"{path} is larger than {limit // 1024:,} KB: use search_files, or shell for a part"
            )
        return FileContents(content, _identity(status))

    @contextlib.contextmanager
    def open(self, path: WorkspacePath, *, is_folder: bool = False) -> Iterator[int]:
        """Open a file or folder for reading and close it at the end of the block.

        Raises:
            ToolError: it cannot be opened, is protected, or the block raised an OSError.
        """
        flags = os.O_RDONLY | (os.O_DIRECTORY if is_folder else 0)
        with self._translate_os_errors(path), self._open_root(path) as root:
            try:
                descriptor = open_beneath(root, path.parts, flags)
            except FileNotFoundError:
                found = self._find_below(root, path)
                descriptor = open_beneath(root, found.parts, flags)
            try:
                protection = self._protection(path.outside)
                if protection.covers(real_path(descriptor), os.fstat(descriptor)):
                    raise _protected_error(path)
                yield descriptor
            finally:
                os.close(descriptor)

    def find(self, path: WorkspacePath) -> WorkspacePath:
        """Return the path of an existing file whose names look the same as the names of a path.

        Names that exist exactly as written are kept, and so are the first name without any match
        and all after it. Whether the path may be opened is decided when it is.

        Raises:
            ToolError: several entries of a folder look like the name; none has it exactly.
        """
        with self._translate_os_errors(path), self._open_root(path) as root:
            try:
                os.close(open_beneath(root, path.parts, O_PATH or os.O_RDONLY))
            except FileNotFoundError:
                return self._find_below(root, path)
            except OSError:  # said when it is opened
                return path
        return path

    def _find_below(self, root: int, path: WorkspacePath) -> WorkspacePath:
        names: list[str] = []
        for part in path.parts:
            try:
                folder = open_beneath(root, names, os.O_RDONLY | os.O_DIRECTORY)
            except OSError:  # said when it is opened
                break
            try:
                found = self._names_of(folder, part, path)
            finally:
                os.close(folder)
            if not found:
                break
            if len(found) > 1:
                raise _ambiguous_error(path, found)
            names += found
        return WorkspacePath(*names, *path.parts[len(names) :], outside=path.outside)

    def _names_of(self, folder: int, part: str, path: WorkspacePath) -> list[str]:
        """Return the entries of an open folder that a name stands for."""
        with contextlib.suppress(FileNotFoundError):
            os.stat(part, dir_fd=folder, follow_symlinks=False)
            return [part]
        if self._protection(path.outside).covers(real_path(folder), os.fstat(folder)):
            return []
        return names_like(part, names_in(folder))

    def is_protected(self, path: str, outside: str = "") -> bool:
        """Return True if a tool may not show the file at this real path; also if it is gone.

        `outside` comes from the `WorkspacePath` that led there.
        """
        try:
            return self._protection(outside).covers(path, os.lstat(path))
        except OSError:
            return True

    def write(
        self, path: WorkspacePath, content: bytes, *, expected: FileContents | None = None
    ) -> bool:
        """Replace a file atomically, or create it and its folders; return True if it is new.

        A file whose name looks the same is replaced, see `find`. Mode and owner of a replaced file
        are kept. After an interruption the file has either the old or the new content; only a mount
        point, or a file in a folder that may not be changed, is written in place.

        Raises:
            ToolError: outside, protected, a symbolic link, not a regular file, a file with several
                hard links, inside `.git`, changed since `expected` was read, or several files look
                like it.
        """
        path = self.find(path)
        with self._changeable_folder(path) as folder:
            before = _replaceable_status(folder, path)
            known = None if before is None else _identity(before)
            if expected is not None and known != expected.identity:
                raise ToolError(f"{path} was changed meanwhile: read it again")
            _replace(folder, path.parts[-1], content, before)
        return before is None

    @contextlib.contextmanager
    def _changeable_folder(self, path: WorkspacePath) -> Iterator[int]:
        """Open the folder of a path that may be changed; missing folders are created.

        Every operation that changes a file gets its folder here.
        """
        if not path.parts:
            raise ToolError("the path names the workspace itself, not a file")
        if path.outside:
            raise _input_error(path)
        if paths.is_protected(str(path)):
            raise _git_error(path)
        with self._translate_os_errors(path), self._open_root(path) as root:
            here = os.dup(root)
            try:
                self._check_change(here, path.parts[0], path)
                for number, name in enumerate(path.parts[1:], start=1):
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(path.parts[number - 1], dir_fd=here)  # follows no link
                    opened = open_beneath(root, path.parts[:number], os.O_RDONLY | os.O_DIRECTORY)
                    os.close(here)
                    here = opened
                    self._check_change(here, name, path)
                yield here
            finally:
                os.close(here)

    def _check_change(self, folder: int, name: str, path: WorkspacePath) -> None:
        """Check that an entry of an open folder may be created or replaced."""
        real, status = real_path(folder), os.fstat(folder)
        if paths.is_protected(f"{real}/{name}"):
            raise _git_error(path)
        if self.folders is not None and f"{real}/{name}/".startswith(f"{self._input}/"):
            raise _input_error(path)
        protection = self._protection(path.outside)
        if protection.covers_new(real, status, name):
            raise _protected_error(path)
        with contextlib.suppress(FileNotFoundError):
            entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if protection.covers(f"{real}/{name}", entry):
                raise _protected_error(path)

    @cached_property
    def _input(self) -> str:
        """The real path of the folder that is not changed."""
        return "" if self.folders is None else os.path.realpath(self.folders.input)

    def _protection(self, outside: str) -> Protection:
        """Return the protection for paths in the workspace, or in a folder outside."""
        if outside not in self._protections:
            root = outside.rpartition("/")[0] if outside else self.root
            self._protections[outside] = self._protected.protection(root)
        return self._protections[outside]

    @contextlib.contextmanager
    def _open_root(self, path: WorkspacePath) -> Iterator[int]:
        """Open the folder that a path is below."""
        root = self.root_of(path)
        try:
            descriptor = open_without_links(root, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            what = "folder" if path.outside else "workspace"
            reason = error.strerror
            with contextlib.suppress(OSError):
                reason = f"it leads to {real}" if (real := find_links(root)) else reason
            raise ToolError(f"the {what} {root} cannot be opened: {reason}") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _translate_os_errors(self, path: WorkspacePath) -> Iterator[None]:
        """Raise a ToolError with a message for the model in place of an OSError."""
        try:
            yield
        except OSError as error:
            reason = _MESSAGES.get(error.errno or 0, f"{{}} cannot be used: {error.strerror}")
            message = reason.format(path)
            if error.errno == errno.ENOENT:
                raise PathNotFound(self._not_found(path, message)) from error
            raise ToolError(message) from error

    def _not_found(self, path: WorkspacePath, message: str) -> str:
        """Return the reason why a path does not exist, with where the file that is meant may be."""
        if path.outside:
            return f"{path} is not a file of the session"
        if self.outside and path.parts[:1] == ("input",):
            sent = "/".join((self.outside, *path.parts[1:]))
            if os.path.lexists(sent):
                return f"{message}; what people sent is {sent}"
        return message


def _git_error(path: WorkspacePath) -> ToolError:
    return ToolError(f"{path} belongs to git, which may run what stands there: use git")


def _input_error(path: WorkspacePath) -> ToolError:
    return ToolError(f"{path} is what somebody sent and cannot be changed: write to output/")


def _protected_error(path: WorkspacePath) -> ToolError:
    return ToolError(f"{path} belongs to Larkspur itself: no tool may open it")


def _ambiguous_error(path: WorkspacePath, names: list[str]) -> ToolError:
    shown = ", ".join(f'"{spell_name(name)}"' for name in names[:_MAX_SHOWN_NAMES])
    return ToolError(
        f"{path} is ambiguous: {len(names)} names look the same: {shown}. Write the characters that"
        " the escapes stand for"
    )


def _replaceable_status(folder: int, path: WorkspacePath) -> os.stat_result | None:
    """Return the status of the file to replace, None if it does not exist."""
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
    """Replace a file, or write into one that is a mount point or in a folder that stays unchanged.

    Raises:
        OSError: it cannot be written.
    """
    try:
        _rename_over(folder, name, content, before)
    except OSError as error:
        if before is None or error.errno not in _NOT_REPLACEABLE:
            raise
        _overwrite(folder, name, content, before)


def _rename_over(folder: int, name: str, content: bytes, before: os.stat_result | None) -> None:
    """Write a temporary file in the same folder and rename it: a rename follows no link."""
    temporary = f".larkspur-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
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
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _overwrite(folder: int, name: str, content: bytes, before: os.stat_result) -> None:
    """Write into a file in place.

    Raises:
        OSError: it cannot be written; it has its former content, unless that fails as well.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(name, flags, dir_fd=folder)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        if _identity(os.fstat(descriptor)) != _identity(before):
            raise OSError(errno.ESTALE, "it was changed meanwhile: read it again")
        former = file.readall()
        try:
            _fill(file, content)
        except OSError:
            _fill(file, former)
            raise


def _fill(file: FileIO, content: bytes) -> None:
    """Make this the whole content of an open file."""
    file.seek(0)
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
    file.truncate()
    os.fsync(file.fileno())
