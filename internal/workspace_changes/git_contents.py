"""Contents that a git repository has already: they need not be read and kept again.

The index of the repository shows which tracked files are unchanged since they were committed or
added. It is a copy of the index that is read, by git in a repository of our own: nothing that the
repository configures runs.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from internal.git.private_repository import private_repository
from internal.git.process import GitFailed, run_git
from internal.workspace_changes.contents import MAX_KEPT_FILE_BYTES, hash_of

TIMEOUT_SECONDS = 20.0
MAX_INDEX_BYTES = 64_000_000
_STATUS = re.compile(
    rb"  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: (\d+)\n"
    rb"  uid: \d+\tgid: \d+\n  size: (\d+)\tflags: [0-9a-f]+\n"
)
_ENTRY = re.compile(rb"(100644|100755) ([0-9a-f]+) 0\t")


class _Tracked(NamedTuple):
    blob: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class GitContents:
    """The contents of files in the repository at the top of a workspace.

    The index is read when it is first needed; without a repository there are no contents.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._tracked: Mapping[str, _Tracked] | None = None
        self._index_ns = 0

    def content(self, path: str, status: os.stat_result) -> str:
        """Return the name of the content of a file, "" if the repository need not have it."""
        if self._tracked is None:
            self._tracked = self._read_index()
        known = self._tracked.get(path)
        if (
            known is None
            or status.st_size > MAX_KEPT_FILE_BYTES
            or known.size != status.st_size & 0xFFFFFFFF
            or known.mtime_ns != status.st_mtime_ns
            or known.ctime_ns != status.st_ctime_ns
            or known.inode != status.st_ino & 0xFFFFFFFF
            # as new as the index: git reads such a file again
            or status.st_mtime_ns >= self._index_ns
        ):
            return ""
        return f"git:{known.blob}"

    def load(self, wanted: Mapping[str, str]) -> dict[str, tuple[bytes | None, str]]:
        """Return the contents with these names (None if missing) and their hashes."""
        if not wanted:
            return {}
        blobs = sorted({name.removeprefix("git:") for name in wanted.values()})
        contents: dict[str, bytes] = {}
        with suppress(GitFailed, OSError, ValueError):
            objects = str(Path(self._root, ".git", "objects"))
            with private_repository(self._root, objects) as own:
                output = run_git(
                    "cat-file",
                    "--batch",
                    folder=self._root,
                    variables=own,
                    timeout_seconds=TIMEOUT_SECONDS,
                    content="".join(f"{blob}\n" for blob in blobs).encode(),
                    only=[self._root, own["GIT_DIR"]],
                )
            contents = _parse_batch(output)
        found: dict[str, tuple[bytes | None, str]] = {}
        for path, name in wanted.items():
            content = contents.get(name.removeprefix("git:"))
            found[path] = content, "" if content is None else hash_of(content)
        return found

    def _read_index(self) -> Mapping[str, _Tracked]:
        index = Path(self._root, ".git", "index")
        with suppress(GitFailed, OSError, ValueError):
            status = index.lstat()
            if status.st_size > MAX_INDEX_BYTES or index.parent.is_symlink():
                return {}
            with private_repository(self._root) as own:
                descriptor = os.open(index, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                with os.fdopen(descriptor, "rb") as file:
                    Path(own["GIT_DIR"], "index").write_bytes(file.read(MAX_INDEX_BYTES))
                listed = run_git(
                    "ls-files",
                    "-z",
                    "--stage",
                    "--debug",
                    folder=self._root,
                    variables=own,
                    timeout_seconds=TIMEOUT_SECONDS,
                )
            self._index_ns = status.st_mtime_ns
            return _parse(listed)
        return {}


def _parse(listed: bytes) -> dict[str, _Tracked]:
    """Return the tracked files of `git ls-files -z --stage --debug`."""
    found: dict[str, _Tracked] = {}
    at = 0
    while at < len(listed):
        end = listed.find(b"\0", at)
        status = _STATUS.match(listed, end + 1)
        if end < 0 or status is None:
            raise ValueError("an index that is not understood")
        if entry := _ENTRY.match(listed, at, end):
            ctime, ctime_ns, mtime, mtime_ns, inode, size = map(int, status.groups())
            found[os.fsdecode(listed[entry.end() : end])] = _Tracked(
                entry[2].decode(),
                size,
                mtime * 1_000_000_000 + mtime_ns,
                ctime * 1_000_000_000 + ctime_ns,
                inode,
            )
        at = status.end()
    return found


def _parse_batch(output: bytes) -> dict[str, bytes]:
    """Return the blobs of `git cat-file --batch`."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        fields = output[at:end].split(b" ")
        at = end + 1
        if fields[-1].isdigit():  # else it is missing
            name, kind, size = fields[0].decode(), fields[1], int(fields[2])
            if kind == b"blob":
                found[name] = output[at : at + size]
            at += size + 1
    return found
