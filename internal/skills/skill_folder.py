"""The files of a skill, read without following links, and the hash of all of them."""

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from internal.agent.domain.system_errors import describe_system_error
from internal.open_files.paths import names_in, open_folder, real_path
from internal.skills.errors import SkillUnreadable

MAX_FILES = 500
MAX_BYTES = 20_000_000
MAX_FOLDER_DEPTH = 10

_SETTLED_NS = 2_000_000_000
"""Two changes within the resolution of a file system's clock look like one."""

FolderVersion = tuple[tuple[object, ...], ...]
"""Metadata of every entry of a folder; it changes with any of them."""


class SkillEntry(msgspec.Struct, frozen=True):
    """A file of a skill. `path` is relative to its folder; `link` is where it leads, "" if none."""

    path: str
    size: int
    executable: bool = False
    link: str = ""
    has_shebang: bool = False

    @property
    def is_script(self) -> bool:
        """True for a file that is meant to be executed."""
        return self.executable or self.has_shebang or "scripts" in Path(self.path).parts[:-1]


class SkillContents(msgspec.Struct, frozen=True):
    """The files of a skill at one moment, in the order of their paths.

    `sha256` covers names, contents, links and executable bits. `kept` is the content of the one
    file that was asked for, as it was hashed; None if there is no such file.
    """

    entries: tuple[SkillEntry, ...]
    sha256: str
    kept: bytes | None


def read_contents(
    root: Path,
    keep: str = "",
    on_file: Callable[[str, bytes], None] = lambda _path, _content: None,
    *,
    boundary: Path | None = None,
) -> SkillContents:
    """Read all files of a skill, and keep the content of the file at the relative path `keep`.

    `on_file` receives the path and the content of every file while it is hashed. Links to files of
    the skill are followed for `keep` only; other links lead nowhere. The skill must be within the
    `boundary`, a folder, whatever links lead to it.

    Raises:
        SkillUnreadable: it has too many files or bytes, or something that is not a file; it is
            outside of the boundary; or it cannot be read.
    """
    try:
        kept = _inside(root, keep) if keep else ""
        return _Reader(root, kept, on_file, boundary=boundary).read()
    except (OSError, UnicodeError) as error:
        reason = describe_system_error(error) if isinstance(error, OSError) else "a name is invalid"
        raise SkillUnreadable(f"{root} cannot be read: {reason}") from error


def folder_version(root: Path, now_ns: int) -> FolderVersion | None:
    """Return the version of a skill without reading its files, which costs ten times as much.

    None if it cannot be told: something was changed a moment before `now_ns`, the time in
    nanoseconds, or the folder cannot be read.
    """
    entries: list[tuple[object, ...]] = []
    waiting = [str(root)]
    newest = 0
    try:
        while waiting:
            folder = waiting.pop()
            with os.scandir(folder) as found:
                children = [(entry.path, entry.stat(follow_symlinks=False)) for entry in found]
            for path, status in [(folder, os.stat(folder)), *children]:  # noqa: PTH116 - fast
                mode, changed = status.st_mode, status.st_ctime_ns
                newest = max(newest, changed)
                entries.append((path, status.st_ino, mode, status.st_size, changed))
                if path != folder and stat.S_ISDIR(mode):
                    waiting.append(path)
            if len(entries) > MAX_FILES:
                return None
    except OSError:
        return None
    return None if abs(now_ns - newest) < _SETTLED_NS else tuple(sorted(entries))


def read_file(folder: int, name: str, max_bytes: int) -> tuple[bytes, int] | None:
    """Return the content of a regular file in an open folder and its mode, otherwise None.

    Of a larger file it is one byte more than `max_bytes`.

    Raises:
        OSError: it cannot be read, or is a link.
    """
    # looked at before it is opened: to open a device may have an effect
    if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        return (file.read(max_bytes + 1), mode) if stat.S_ISREG(mode) else None


def is_within(path: str, folder: Path) -> bool:
    """Return True for a path without links that is a folder or below it."""
    real = os.path.realpath(folder)
    return path == real or path.startswith(f"{real.rstrip('/')}/")


def _inside(root: Path, path: str) -> str:
    """Return the path of a file of the skill without links, relative to the skill.

    Raises:
        SkillUnreadable: it is outside of the skill.
    """
    if "\0" in path:
        raise SkillUnreadable("A path cannot contain a null character.")
    real_root = os.path.realpath(root)
    real = os.path.realpath(Path(real_root, path))
    if not real.startswith(f"{real_root}/"):
        raise SkillUnreadable(f"{root / path[:200]} leads out of the skill, to {real}.")
    return os.path.relpath(real, real_root)


class _Reader:
    def __init__(
        self,
        root: Path,
        keep: str,
        on_file: Callable[[str, bytes], None],
        *,
        boundary: Path | None,
    ) -> None:
        self._root, self._keep, self._on_file = root, keep, on_file
        self._boundary = boundary
        self._hash = hashlib.sha256()
        self._entries: list[SkillEntry] = []
        self._bytes = 0
        self._kept: bytes | None = None

    def read(self) -> SkillContents:
        with open_folder(str(self._root), follows_link=True) as folder:
            # uses the open folder: a link may have been put in its path meanwhile
            if self._boundary is not None and not is_within(real_path(folder), self._boundary):
                raise SkillUnreadable(f"{self._root} leads out of {self._boundary}.")
            self._read_folder(folder, "", 0)
        return SkillContents(tuple(self._entries), self._hash.hexdigest(), self._kept)

    def _read_folder(self, folder: int, prefix: str, depth: int) -> None:
        if depth > MAX_FOLDER_DEPTH:
            raise SkillUnreadable(f"{self._root}/{prefix}: its folders are nested too deeply.")
        for name in sorted(names_in(folder)):
            path = f"{prefix}{name}"
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                self._add("folder", path, b"", executable=False)
                with open_folder(name, folder) as inner:
                    self._read_folder(inner, f"{path}/", depth + 1)
            elif stat.S_ISLNK(status.st_mode):
                link = os.readlink(name, dir_fd=folder)
                self._append(SkillEntry(path, 0, link=link))
                self._add("link", path, link.encode(), executable=False)
            else:
                self._read_file(folder, name, path)

    def _read_file(self, folder: int, name: str, path: str) -> None:
        found = read_file(folder, name, MAX_BYTES - self._bytes)
        if found is None:
            raise SkillUnreadable(f"{self._root}/{path} is neither a file nor a folder.")
        content, mode = found
        self._bytes += len(content)
        if self._bytes > MAX_BYTES:
            raise SkillUnreadable(f"{self._root}: a skill may have at most {MAX_BYTES:,} bytes.")
        executable = bool(mode & 0o111)
        shebang = content.startswith(b"#!")
        self._append(SkillEntry(path, len(content), executable, has_shebang=shebang))
        self._add("file", path, content, executable=executable)
        self._on_file(path, content)
        if path == self._keep:
            self._kept = content

    def _append(self, entry: SkillEntry) -> None:
        self._entries.append(entry)
        if len(self._entries) > MAX_FILES:
            raise SkillUnreadable(f"{self._root}: a skill may have at most {MAX_FILES} files.")

    def _add(self, kind: str, path: str, content: bytes, *, executable: bool) -> None:
        # every part has its length in front, so that no two folders make the same bytes
        parts = (kind.encode(), path.encode(), b"x" if executable else b"-", content)
        for part in parts:
            self._hash.update(len(part).to_bytes(8, "big"))
            self._hash.update(part)
