"""A walk of a workspace, compared with the walk before it."""

import stat
from collections.abc import Callable

from internal.workspace_changes.contents import (
    ABSENT,
    ContentReader,
    WatchedFileState,
    identity_of,
    is_secret,
)
from internal.workspace_changes.git_contents import GitContents
from internal.workspace_changes.records import WorkspaceRecords, is_same
from internal.workspace_changes.walk import FoundEntry, WalkReport

Selection = Callable[[str, bool], bool]
"""Whether the content of a file is read, by its path and whether it changed or is new."""


class WalkComparison:
    """Compares the files of one walk with the files of the walk before it.

    Args:
        records: the stored walk.
        git: contents that need not be read, because a repository has them.
        reads: whether the content of a file is read.
        last_ns: the start of the last walk, in ns since 1970.
        was_complete: whether the last walk covered everything.
        has_open_runs: whether the changes belong to runs.
    """

    def __init__(
        self,
        records: WorkspaceRecords,
        git: GitContents,
        reads: Selection,
        *,
        last_ns: int,
        was_complete: bool,
        has_open_runs: bool,
    ) -> None:
        self.states: dict[str, WatchedFileState] = {}
        self.changes: dict[str, tuple[WatchedFileState, WatchedFileState]] = {}
        self._known = records.files()
        self._git = git
        self._reads = reads
        self._last_ns = last_ns
        self._was_complete = was_complete
        self._has_open_runs = has_open_runs
        self._seen: set[str] = set()
        self._reader = ContentReader(records.keep, records.kept_bytes())

    def visit(self, entry: FoundEntry) -> None:
        """Compare an entry with its recorded state."""
        path, identity = entry.path, identity_of(entry.status)
        known = self._known.get(path)
        is_changed = known is None or known.identity != identity
        reads = self._reads(path, is_changed)
        if known is not None and not is_changed:
            is_kept = bool(known.content) or known.kind != "file"
            if is_kept or not reads or not self._reader.may_keep(path, entry.status):
                self._seen.add(path)
                return
        try:
            state = self._state(entry, reads=reads, is_changed=is_changed)
        except FileNotFoundError:
            return
        except OSError:  # not readable, or something else by now
            if not stat.S_ISREG(entry.status.st_mode):
                return
            state = _unread(entry)
        self._seen.add(path)
        self.states[path] = state
        if known is None:
            if not self._was_complete and entry.status.st_ctime_ns < self._last_ns:
                return  # the last walk did not get here
            self.changes[path] = ABSENT, state
        elif is_changed and not is_same(known, state):
            self.changes[path] = known, state

    def gone(self, report: WalkReport) -> list[str]:
        """Return the known files that are gone, and add their changes."""
        if not report.is_complete:
            return []
        found = [
            path
            for path in self._known
            if path not in self._seen and not _is_below(path, report.unread)
        ]
        self.changes.update((path, (self._known[path], ABSENT)) for path in found)
        return found

    def _state(self, entry: FoundEntry, *, reads: bool, is_changed: bool) -> WatchedFileState:
        status = entry.status
        if not stat.S_ISREG(status.st_mode):
            return self._reader.read(entry.folder, entry.name, entry.path, status)
        # files that a run changed are kept here: the repository need not keep them
        may_rely = not (is_changed and self._has_open_runs) and not is_secret(entry.path)
        if may_rely and (name := self._git.content(entry.path, status)):
            return _unread(entry)._replace(content=name)
        if not reads:
            return _unread(entry)
        return self._reader.read(entry.folder, entry.name, entry.path, status)


def load_git_contents(
    changes: dict[str, tuple[WatchedFileState, WatchedFileState]],
    git: GitContents,
    records: WorkspaceRecords,
) -> None:
    """Keep the contents from the repository that changed files had before."""
    wanted = {
        path: before.content
        for path, (before, _) in changes.items()
        if before.content.startswith("git:")
    }
    for path, (content, name) in git.load(wanted).items():
        before, after = changes[path]
        if content is not None and len(content) == before.size:
            records.keep(name, content)
            before = before._replace(content=name)
        else:
            before = before._replace(content="")
        if is_same(before, after):
            del changes[path]
        else:
            changes[path] = before, after


def _unread(entry: FoundEntry) -> WatchedFileState:
    """Return the state of a regular file without its content."""
    status = entry.status
    return WatchedFileState("file", "", status.st_size, status.st_mode & 0o777, identity_of(status))


def _is_below(path: str, folders: frozenset[str]) -> bool:
    if not folders:
        return False
    at = path.find("/")
    while at >= 0:
        if path[:at] in folders:
            return True
        at = path.find("/", at + 1)
    return False
