"""Reads the instruction files of the owner and of a folder: `AGENTS.md`, else `CLAUDE.md`.

Files are opened below the root of the repository as tools open them below a workspace: a symbolic
link may only lead to such a file in it, and no file of Larkspur itself is read. A text that a
command of an agent may have written is not followed before a person's yes.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from internal.agent.domain.text import escape_invisible, truncate_line
from internal.agent.ports.instructions import (
    FILE_NAMES,
    MAX_TEXT_BYTES,
    FoundInstructions,
    IgnoredFile,
    IgnoreReason,
    Instruction,
    InstructionSource,
)
from internal.open_files.paths import destination, open_beneath, open_components, real_path
from internal.text_encodings.stream import StreamDecoder
from internal.tools.instruction_trust import InstructionTrust
from internal.tools.protected_paths import ProtectedPaths, Protection

MAX_FOLDERS = 32
"""Folders of a repository that are searched: the deepest ones."""

_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR})
_REASONS: dict[int, tuple[IgnoreReason, str]] = {
    errno.EXDEV: ("link", "it leads outside through a symbolic link"),
    errno.ELOOP: ("link", "it is a symbolic link that is not followed"),
    errno.EACCES: ("unreadable", "permission denied"),
    errno.ENXIO: ("no_file", "it is not a regular file"),
}
_MAX_NAME_CHARS = 200


class _Ignored(Exception):
    """A file is not used; the text has the reason."""

    def __init__(self, reason: IgnoreReason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class WorkspaceInstructionFiles:
    """Reads instruction files. May be used in several threads.

    Args:
        home: the folder of the owner's file, whose symbolic links are not followed.
        protected: the files of Larkspur, which are never read as instructions of a folder.
        trust: the texts that may be followed.
    """

    def __init__(self, home: Path, protected: ProtectedPaths, trust: InstructionTrust) -> None:
        self._home = str(home)
        self._protected = protected
        self._trust = trust

    def read(self, workspace: str | None, /) -> FoundInstructions:
        """Return the owner's file, then files from the repository's root down to the workspace."""
        ignored: list[IgnoredFile] = []
        texts = [*self._owner(ignored)]
        if workspace is not None and not _is_missing(workspace):
            texts += self._folder(destination(workspace), ignored)
        return FoundInstructions(tuple(texts), tuple(ignored))

    def _owner(self, ignored: list[IgnoredFile]) -> Iterator[Instruction]:
        name = FILE_NAMES[0]
        if _is_missing(f"{self._home}/{name}"):
            return
        try:
            home = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            file = open_components(home, (name,), os.O_RDONLY)
            try:
                yield _read(file, "owner", name)
            finally:
                os.close(file)
        except (OSError, _Ignored) as error:
            if found := _reason(error):
                sentence = f"{name} of the owner was ignored: {found[1]}"
                ignored.append(IgnoredFile("owner", name, found[0], sentence))
        finally:
            os.close(home)

    def _folder(self, workspace: str, ignored: list[IgnoredFile]) -> list[Instruction]:
        is_own = self._protected.is_session_folder(workspace)
        root = workspace if is_own else root_of(workspace)
        below = Path(workspace).relative_to(root).parts
        try:
            folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # removed meanwhile
            return []
        except OSError as error:
            sentence = f"the folder {_shown(root)} was not searched: {error.strerror}"
            ignored.append(IgnoredFile("folder", "", "no_folder", sentence))
            return []
        found: list[Instruction] = []
        try:
            protection = self._protected.protection(workspace)
            for depth in range(max(len(below) + 1 - MAX_FOLDERS, 0), len(below) + 1):
                check = partial(self._check, protection=protection)
                accept = partial(self._accept, is_own=is_own)
                found += _read_first(folder, below[:depth], (check, accept), ignored)
        finally:
            os.close(folder)
        return found

    def _check(self, file: int, protection: Protection) -> None:
        """Check where an open file of a folder is.

        Raises:
            _Ignored: it may not instruct the model.
        """
        path, status = real_path(file), os.fstat(file)
        if protection.covers(path, status):
            raise _Ignored("protected", "it belongs to Larkspur")
        if os.path.basename(path) not in FILE_NAMES:  # noqa: PTH119 - text
            raise _Ignored("link", "it is a symbolic link to a file of another name")

    def _accept(self, file: int, content: bytes, *, is_own: bool) -> None:
        """Check the content of an open file of a folder.

        Raises:
            _Ignored: nobody has agreed to it.
        """
        path = real_path(file)
        if not self._trust.follows(path, content, is_own=is_own):
            advice = f"to read and follow it, run: larkspur trust {_shown(path)}"
            raise _Ignored("written", f"a command of an agent may have written it; {advice}")


def _read_first(
    root: int,
    parts: tuple[str, ...],
    checks: tuple[Callable[[int], None], Callable[[int, bytes], None]],
    ignored: list[IgnoredFile],
) -> list[Instruction]:
    """Return the instructions of one folder below the root; nothing if they are ignored.

    The checks apply to the location of an open file and to its content.
    """
    check, accept = checks
    for file_name in FILE_NAMES:
        name = "/".join((*parts, file_name))
        try:
            file = open_beneath(root, (*parts, file_name), os.O_RDONLY)
            try:
                check(file)
                return [_read(file, "folder", name, accept)]
            finally:
                os.close(file)
        except (OSError, _Ignored) as error:
            if found := _reason(error):
                shown, (reason, text) = _shown(name), found
                sentence = f"{shown} was ignored: {text}"
                ignored.append(IgnoredFile("folder", shown, reason, sentence))
                return []
    return []


def _is_missing(path: str) -> bool:
    """Return whether a path names nothing, as the folder of a session before it is needed."""
    try:
        os.lstat(path)
    except OSError as error:
        return error.errno == errno.ENOENT  # other errors are those of what opens it
    return False


def read_beginning(root: str, name: str) -> tuple[str, bytes]:
    """Return the real path of a file below a folder, and its beginning up to `MAX_TEXT_BYTES`.

    Raises:
        OSError: it cannot be read, or is not a regular file below the folder.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        file = open_beneath(folder, name.split("/"), os.O_RDONLY)
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), name)
        return real_path(file), os.pread(file, MAX_TEXT_BYTES, 0)
    finally:
        os.close(file)


def root_of(workspace: str) -> str:
    """Return the nearest folder with a repository, from the workspace upwards; else the workspace.

    A folder of another user is not a root: in `/tmp`, anybody could leave instructions for
    everybody.
    """
    try:
        users = {os.geteuid(), os.stat(workspace).st_uid}  # noqa: PTH116 - text
        for folder in (Path(workspace), *Path(workspace).parents):
            if os.path.lexists(folder / ".git"):
                return str(folder) if folder.stat().st_uid in users else workspace
    except OSError:
        pass
    return workspace


def _read(
    file: int,
    source: InstructionSource,
    name: str,
    accept: Callable[[int, bytes], None] = lambda _file, _content: None,
) -> Instruction:
    """Read an open file up to its bound; `accept` checks the content.

    Raises:
        OSError, _Ignored: it cannot be read, is not a regular file, or is not accepted.
    """
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        is_folder = stat.S_ISDIR(status.st_mode)
        raise _Ignored("no_file", "it is a folder" if is_folder else "it is not a regular file")
    with os.fdopen(os.dup(file), "rb") as opened:
        content = opened.read(MAX_TEXT_BYTES)
    accept(file, content)
    unread = max(status.st_size - len(content), 0)
    decoder = StreamDecoder()
    text = decoder.decode(content, final=not unread)  # else the last character may be cut
    return Instruction(source, text, name, unread + decoder.pending)


def _reason(error: OSError | _Ignored) -> tuple[IgnoreReason, str] | None:
    """Return why a file is not used, None if it does not exist."""
    if isinstance(error, _Ignored):
        return error.reason, str(error)
    if error.errno in _MISSING:
        return None
    return _REASONS.get(error.errno or 0) or ("unreadable", os.strerror(error.errno or 0))


def _shown(name: str) -> str:
    return escape_invisible(
        truncate_line(os.fsencode(name).decode("utf-8", "replace"), _MAX_NAME_CHARS)
    )
