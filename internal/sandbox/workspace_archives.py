"""Archives of the workspaces of sessions: tar files compressed with gzip.

An archive contains regular files, folders and symbolic links that lead to something in it: no
devices, no owners, no rights of other users, and each file once, also if it has several hard links.
"""

import errno
import hashlib
import json
import os
import posixpath
import re
import secrets
import stat
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from internal.agent.domain.errors import StoreCorrupt, StoreUnavailable
from internal.agent.domain.ids import SessionId
from internal.agent.domain.text import format_size
from internal.agent.ports.workspaces import NotArchivable, PackedWorkspace
from internal.sandbox.workspaces import VERSIONS_FOLDER, remove_tree

MAX_VERSIONS = 20
"""Versions of a folder that are remembered."""
MAX_DEPTH = 100
"""Maximum nesting of folders: each is open while its contents are packed."""
MAX_PATH_BYTES = 2_000
"""The length of the path of a folder in an archive: hosts unpack it by path."""
_CHANGING = "they are being changed"
_COMPRESSION_LEVEL = 1
_CHUNK_BYTES = 1024 * 1024
_WORKSPACE, _TASKS = "workspace", "tasks"
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PERMISSIONS = 0o777
_TASK_FOLDER = re.compile(r"[A-Za-z0-9._-]+")


class ArchiveLimits(NamedTuple):
    """The limits of an archive: files, folders and links; bytes as files, and compressed."""

    entries: int = 100_000
    unpacked_bytes: int = 2 * 1024**3
    packed_bytes: int = 200 * 1024**2


class _Entry(NamedTuple):
    """A file, folder or link: its path in the archive, and its name in an open folder.

    Commands may change the folders at any moment, so nothing is reached by a path.
    """

    path: str
    folder: int
    name: str
    status: os.stat_result


class FolderArchives:
    """Implements `WorkspaceArchives`: the folder of a session and the folders of its subtasks.

    Args:
        root: the folder with the folders `workspaces`, `task-folders` and `worktrees`.
    """

    def __init__(self, root: Path, limits: ArchiveLimits | None = None) -> None:
        self._root = root
        self._limits = limits or ArchiveLimits()

    def versions(self, session_id: SessionId, /) -> frozenset[str]:
        """Return the versions that the folder of a session has; see the port."""
        if not (self._root / "workspaces" / session_id).is_dir():
            return frozenset()
        return frozenset(self._read_versions(session_id))

    def add_version(self, session_id: SessionId, version: str, /) -> None:
        """Record that the folder of a session has the contents of an archive.

        Raises:
            StoreUnavailable: the record cannot be written.
        """
        self._write_versions(session_id, [*self._read_versions(session_id), version])

    def fingerprint(self, session_id: SessionId, /) -> str:
        """Return a value that changes with the files of a session; see the port.

        Raises:
            NotArchivable: the files cannot be listed, or are too many.
        """
        digest, count = hashlib.sha256(), 0
        for entry in self._entries(session_id):
            count += 1
            found = entry.status
            size = 0 if stat.S_ISDIR(found.st_mode) else found.st_size
            row = (entry.path, found.st_mode, size, found.st_mtime_ns, found.st_ino)
            digest.update(repr(row).encode("utf-8", "surrogateescape"))
        return digest.hexdigest() if count else ""

    def pack(self, session_id: SessionId, descriptor: int, /) -> PackedWorkspace:
        """Write an archive of the files of a session to an empty open file; see the port.

        Raises:
            NotArchivable: the files are too many or too large, cannot be read, or belong to a git
                worktree.
            StoreUnavailable: the archive cannot be written.
        """
        if any((self._root / "worktrees").glob(f"{session_id}.*")):
            raise NotArchivable("there is a git worktree of one of its subtasks")
        with os.fdopen(os.dup(descriptor), "wb") as file:
            try:
                return self._write(session_id, file)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise StoreUnavailable(f"The archive cannot be written: {reason}.") from error

    def unpack(self, session_id: SessionId, descriptor: int | None, version: str, /) -> None:
        """Replace the files of a session by the files of an archive; see the port.

        Raises:
            StoreCorrupt: it is not an archive of a workspace; the files are as before.
            StoreUnavailable: the files cannot be written.
        """
        new = self._root / f".unpacked-{secrets.token_hex(8)}"
        try:
            self._make_roots()
            new.mkdir(mode=0o700)
            for name in (_WORKSPACE, _TASKS):
                (new / name).mkdir(mode=0o700)
            if descriptor is not None:
                with os.fdopen(os.dup(descriptor), "rb") as file:
                    file.seek(0)
                    _Unpacking(new, self._limits).read(file)
            self._replace(session_id, new)
            self._write_versions(session_id, [version])
        except (tarfile.TarError, EOFError, zlib.error, UnicodeError) as error:
            raise StoreCorrupt(f"the archive is damaged ({error})") from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StoreUnavailable(f"The workspace cannot be restored: {reason}.") from error
        finally:
            with suppress(OSError):
                remove_tree(new)

    def _write(self, session_id: SessionId, file: BinaryIO) -> PackedWorkspace:
        count = total = 0
        left_out: list[str] = []
        with tarfile.open(
            fileobj=file, mode="w:gz", format=tarfile.PAX_FORMAT, compresslevel=_COMPRESSION_LEVEL
        ) as archive:
            for entry in self._entries(session_id):
                member = _member(entry)
                if member is None:
                    left_out.append(entry.path.partition("/")[2])
                    continue
                if member.isreg():
                    total += member.size
                    self._check_size(total, file.tell())
                    count += _add_file(archive, member, entry)
                else:
                    archive.addfile(member)
        self._check_size(total, file.tell())
        return PackedWorkspace(count, tuple(left_out))

    def _check_size(self, unpacked: int, packed: int) -> None:
        for size, limit, what in (
            (unpacked, self._limits.unpacked_bytes, ""),
            (packed, self._limits.packed_bytes, " as an archive"),
        ):
            if size > limit:
                raise NotArchivable(f"they are larger than {format_size(limit)}{what}")

    def _entries(self, session_id: SessionId) -> Iterator[_Entry]:
        """Yield the files of a session, folders before their contents, in a fixed order."""
        count = 0
        folder = self._root / "workspaces" / session_id
        tasks = sorted((self._root / "task-folders").glob(f"{session_id}.*"))
        tops = [(_WORKSPACE, folder), *((f"{_TASKS}/{each.name}", each) for each in tasks)]
        for prefix, top in tops:
            try:
                opened = os.open(top, _FOLDER_FLAGS)
            except OSError as error:
                if error.errno in _NO_FOLDER:
                    continue
                raise NotArchivable(_unreadable(prefix, error)) from error
            try:
                if prefix != _WORKSPACE:
                    yield _Entry(prefix, opened, ".", os.fstat(opened))
                for entry in _walk(opened, prefix):
                    count += 1
                    if count > self._limits.entries:
                        raise NotArchivable(f"they are more than {self._limits.entries:,}")
                    yield entry
            finally:
                os.close(opened)

    def _replace(self, session_id: SessionId, new: Path) -> None:
        """Replace the files of a session by the unpacked ones."""
        self._version_file(session_id).unlink(missing_ok=True)  # until all is in place
        folders, tasks = self._root / "workspaces", self._root / "task-folders"
        for old in (folders / session_id, *tasks.glob(f"{session_id}.*")):
            if os.path.lexists(old):
                remove_tree(old)
        for each in (new / _TASKS).iterdir():
            if each.name.rpartition(".")[0] == session_id:
                each.rename(tasks / each.name)
        (new / _WORKSPACE).rename(folders / session_id)

    def _make_roots(self) -> None:
        for name in ("workspaces", "task-folders", VERSIONS_FOLDER):
            (self._root / name).mkdir(mode=0o700, parents=True, exist_ok=True)

    def _version_file(self, session_id: SessionId) -> Path:
        return self._root / VERSIONS_FOLDER / session_id

    def _read_versions(self, session_id: SessionId) -> list[str]:
        try:
            found = json.loads(self._version_file(session_id).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [str(each) for each in found] if isinstance(found, list) else []

    def _write_versions(self, session_id: SessionId, versions: list[str]) -> None:
        path = self._version_file(session_id)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.write_text(json.dumps(versions[-MAX_VERSIONS:]), encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            raise StoreUnavailable(f"{path} cannot be written: {error.strerror}.") from error


class _Unpacking:
    """Unpacks an archive into a new folder.

    Links are made last: until then nothing in the folder leads out of it.
    """

    def __init__(self, folder: Path, limits: ArchiveLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._folders: dict[str, int] = {_WORKSPACE: 0o700, _TASKS: 0o700}
        self._links: dict[str, str] = {}
        self._files: set[str] = set()
        self._bytes = 0

    def read(self, file: BinaryIO) -> None:
        """Unpack everything.

        Raises:
            StoreCorrupt: it contains entries that no archive of a workspace has.
            TarError, EOFError, zlib.error, OSError: it cannot be read or written.
        """
        with tarfile.open(fileobj=file, mode="r|gz") as archive:
            for count, member in enumerate(archive, 1):
                if count > 2 * self._limits.entries:
                    raise StoreCorrupt("the archive has too many entries")
                self._unpack(archive, member)
        for path, target in self._links.items():
            (self._folder / path).symlink_to(target)
        for path, mode in sorted(self._folders.items(), reverse=True):
            (self._folder / path).chmod(mode)

    def _unpack(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = member.name
        self._check(path)
        mode = member.mode & _PERMISSIONS
        if member.isdir():
            (self._folder / path).mkdir(mode=0o700)
            self._folders[path] = mode
        elif member.issym() and _leads_inside(path, member.linkname):
            self._links[path] = member.linkname
        elif member.isreg() and not member.issparse():
            self._files.add(path)
            self._bytes += member.size
            if self._bytes > self._limits.unpacked_bytes:
                raise StoreCorrupt("the archive is too large")
            self._write(archive, member, mode)
        else:
            raise StoreCorrupt(f"the archive contains {path[:200]!r}, which is no file or folder")

    def _check(self, path: str) -> None:
        """Check that a path is new and directly in a folder that was unpacked."""
        parent, _, name = path.rpartition("/")
        is_new = path not in self._folders and path not in self._files and path not in self._links
        is_task = parent != _TASKS or _TASK_FOLDER.fullmatch(name)
        if parent not in self._folders or name in {"", ".", ".."} or not is_new or not is_task:
            raise StoreCorrupt(f"the archive contains the path {path[:200]!r}")

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, mode: int) -> None:
        source = archive.extractfile(member)
        path = self._folder / member.name
        descriptor = os.open(path, _WRITE_FLAGS, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            while source is not None and (piece := source.read(_CHUNK_BYTES)):
                file.write(piece)
            file.flush()
            os.fchmod(descriptor, mode)
            os.utime(descriptor, (member.mtime, member.mtime))


def _walk(folder: int, path: str) -> Iterator[_Entry]:
    """Yield the entries of an open folder and below. Links are not followed."""
    if path.count("/") > MAX_DEPTH or len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise NotArchivable("their folders are nested too deeply")
    folders: list[_Entry] = []
    for entry in _children(folder, path):
        yield entry
        if stat.S_ISDIR(entry.status.st_mode):
            folders.append(entry)
    for entry in reversed(folders):
        opened = _open(entry, _FOLDER_FLAGS)
        if opened is not None:
            try:
                yield from _walk(opened, entry.path)
            finally:
                os.close(opened)


def _children(folder: int, path: str) -> Iterator[_Entry]:
    try:
        for name in sorted(os.listdir(folder)):
            with suppress(FileNotFoundError):  # removed since it was listed
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                yield _Entry(f"{path}/{name}", folder, name, status)
    except OSError as error:
        raise NotArchivable(_unreadable(path, error)) from error


def _open(entry: _Entry, flags: int) -> int | None:
    """Open an entry, None if it no longer exists; the caller closes it."""
    try:
        opened = os.open(entry.name, flags, dir_fd=entry.folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _NO_FOLDER:  # a link or something else has taken its place
            raise NotArchivable(_CHANGING) from error
        raise NotArchivable(_unreadable(entry.path, error)) from error
    if os.path.samestat(os.fstat(opened), entry.status):
        return opened
    os.close(opened)
    raise NotArchivable(_CHANGING)


def _member(entry: _Entry) -> tarfile.TarInfo | None:
    """Return the header of an entry, None if it cannot be in an archive."""
    mode = entry.status.st_mode
    member = tarfile.TarInfo(entry.path)
    member.mode = mode & _PERMISSIONS
    member.mtime = int(entry.status.st_mtime)
    if stat.S_ISDIR(mode):
        member.type = tarfile.DIRTYPE
    elif stat.S_ISREG(mode):
        member.size = entry.status.st_size
    elif stat.S_ISLNK(mode):
        try:
            target = os.readlink(entry.name, dir_fd=entry.folder)
        except OSError:
            return None
        if not _leads_inside(entry.path, target):
            return None
        member.type, member.linkname = tarfile.SYMTYPE, target
    else:
        return None
    return member


def _leads_inside(path: str, target: str) -> bool:
    """Return whether a link leads to a file in the same folder of a session or subtask.

    A target must not lead up after a name: the name may be another link.
    """
    down = target.split("/")
    while down and down[0] == "..":
        del down[0]
    if not target or target.startswith("/") or ".." in down or "\0" in target:
        return False
    top = "/".join(path.split("/")[: 1 if path.startswith(f"{_WORKSPACE}/") else 2])
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return reached == top or reached.startswith(f"{top}/")


def _add_file(archive: tarfile.TarFile, member: tarfile.TarInfo, entry: _Entry) -> int:
    """Add a regular file in its current state; return how many were added: 0 if it is gone."""
    descriptor = _open(entry, _READ_FLAGS)
    if descriptor is None:
        return 0
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size != member.size:
            raise NotArchivable(_CHANGING)
        try:
            archive.addfile(member, file)
        except OSError as error:
            if error.errno is None:  # of tarfile: the file has become shorter
                raise NotArchivable(_CHANGING) from error
            raise
    return 1


def _unreadable(path: str, error: OSError) -> str:
    name = path.partition("/")[2] or "the folder"
    return f"{name} cannot be read ({error.strerror})"
