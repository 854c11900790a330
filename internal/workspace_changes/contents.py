"""Contents of files: which are kept, which never, and how they are read."""

import fnmatch
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable
from typing import NamedTuple

MAX_KEPT_FILE_BYTES = 1_000_000
"""Larger files are listed, but have no diff and cannot be undone."""
MAX_KEPT_BYTES = 256_000_000
"""Bytes of one workspace that are kept, before compression."""
MAX_READ_SECONDS = 10.0
"""Time for which one walk reads files. The next one reads the remaining files."""

_SECRET_NAMES = (
    ".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc",
    ".git-credentials", ".htpasswd", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key",
    "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "credentials", "credentials.json",
    "secrets.json", "secrets.yaml", "secrets.yml", "secrets.toml",
)  # fmt: skip
_SECRET = re.compile("|".join(map(fnmatch.translate, _SECRET_NAMES)))
_EXAMPLE_ENDS = (".example", ".sample", ".template", ".dist")
_SECRET_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".docker"})
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# The clock of a file system moves in ticks of at most this: a file that was changed in the tick in
# which it is read may change once more without another time.
_TICK_NS = 20_000_000


class WatchedFileState(NamedTuple):
    """A file at one moment: `kind` is "file", "link" or "" for nothing.

    `content` is the hash of the content, or of where a link leads; "" if it is not known.
    """

    kind: str
    content: str = ""
    size: int = 0
    mode: int = 0
    identity: str = ""


ABSENT = WatchedFileState("")


def is_secret(path: str) -> bool:
    """Return True for a path that by its name holds secrets: its content is never kept or shown."""
    *folders, name = path.casefold().split("/")
    if not _SECRET_FOLDERS.isdisjoint(folders):
        return True
    return _SECRET.match(name) is not None and not name.endswith(_EXAMPLE_ENDS)


def identity_of(status: os.stat_result) -> str:
    """Return a value that changes with the content of a file."""
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def kind_of(status: os.stat_result) -> str:
    """Return "file" or "link"; "" for anything else."""
    if stat.S_ISLNK(status.st_mode):
        return "link"
    return "file" if stat.S_ISREG(status.st_mode) else ""


def hash_of(content: bytes) -> str:
    """Return the hash by which a content is known."""
    return hashlib.sha256(content).hexdigest()


class ContentReader:
    """Reads the contents of one walk, within its limits.

    Args:
        keep: stores a content under its hash.
        kept_bytes: the bytes that are kept already.
    """

    def __init__(self, keep: Callable[[str, bytes], None], kept_bytes: int) -> None:
        self._keep = keep
        self._left_bytes = MAX_KEPT_BYTES - kept_bytes
        self._deadline = time.monotonic() + MAX_READ_SECONDS

    def may_keep(self, path: str, status: os.stat_result) -> bool:
        """Return whether the content of a file would be kept now."""
        size = status.st_size
        return (
            size <= MAX_KEPT_FILE_BYTES
            and size <= self._left_bytes
            and time.monotonic() < self._deadline
            and not is_secret(path)
        )

    def read(self, folder: int, name: str, path: str, status: os.stat_result) -> WatchedFileState:
        """Return the state of an entry of an open folder, and keep its content if that is allowed.

        Raises:
            OSError: it cannot be read, or is something else by now.
        """
        if kind_of(status) == "link":
            target = os.fsencode(os.readlink(name, dir_fd=folder))
            self._keep(hash_of(target), target)
            return WatchedFileState("link", hash_of(target), len(target), 0, identity_of(status))
        state = WatchedFileState(
            "file", "", status.st_size, status.st_mode & 0o777, identity_of(status)
        )
        if not self.may_keep(path, status):
            return state
        content, status = read_file(folder, name, MAX_KEPT_FILE_BYTES)
        state = state._replace(size=status.st_size, identity=identity_of(status))
        if content is None:
            return state
        self._keep(hash_of(content), content)
        self._left_bytes -= len(content)
        is_new = status.st_ctime_ns > time.time_ns() - _TICK_NS
        identity = "" if is_new or len(content) != status.st_size else state.identity
        return state._replace(content=hash_of(content), size=len(content), identity=identity)


def read_file(folder: int, name: str, limit: int) -> tuple[bytes | None, os.stat_result]:
    """Return the content of a regular file of an open folder, and its status before that.

    The content is None if it has more than `limit` bytes.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{name} is not a regular file")
        if status.st_size > limit:
            return None, status
        # one byte more: a file may have grown, and files of some file systems have no size
        content = os.read(descriptor, status.st_size + 1)
        while len(content) > status.st_size and len(content) <= limit:
            piece = os.read(descriptor, limit + 1 - len(content))
            if not piece:
                break
            content += piece
    finally:
        os.close(descriptor)
    return (None if len(content) > limit else content), status
