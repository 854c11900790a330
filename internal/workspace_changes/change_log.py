"""The recorded changes of runs, their diffs and their undoing. The methods block."""

import difflib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from internal.agent.domain.errors import Conflict, NotFound, StoreUnavailable
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.workspaces import (
    ChangeDiff,
    FileChange,
    FileChangeKind,
    FileChanges,
)
from internal.open_files.paths import open_without_links
from internal.tools.diffs import unified_diff
from internal.tools.protected_paths import ProtectedPaths
from internal.workspace_changes.contents import (
    ABSENT,
    MAX_KEPT_FILE_BYTES,
    ContentReader,
    WatchedFileState,
    hash_of,
    identity_of,
    is_secret,
    kind_of,
    read_file,
)
from internal.workspace_changes.git_contents import GitContents
from internal.workspace_changes.records import (
    ChangeFolder,
    ChangeRecord,
    WorkspaceRecords,
    is_same,
)
from internal.workspace_changes.walk import FoundEntry, WalkReport, open_parent, walk

MAX_COUNT_SECONDS = 3.0
"""How long the lines of changes are counted after a walk; of the others no lines are known."""
MAX_DIFF_CHARACTERS = 400_000
_MAX_COMPARED = 4_000_000
"""Pairs of lines that are compared to count the changed ones."""
_BINARY_BYTES = 8_000
_MAX_DIGITS = 18
"""Digits of an integer of SQLite."""


class WorkspaceChangeLog:
    """Records what runs change in their workspaces.

    Args:
        folder: the folder that has the records.
        protected: the files of Larkspur itself, which are never looked at.
    """

    def __init__(self, folder: Path, protected: ProtectedPaths) -> None:
        self._folder = ChangeFolder(folder)
        self._protected = protected

    def begin(
        self,
        root: str,
        run_id: RunId,
        session_id: SessionId,
        *,
        skipped: frozenset[str] = frozenset(),
        has_ended: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Take what is in a workspace now as the state before a run.

        What changed since the last walk belongs to the runs that are open. A run that is open
        already, because its process died, keeps its state. Those that `has_ended` are closed.

        Raises:
            StoreUnavailable: the folder cannot be read, or nothing can be stored.
        """
        self._folder.add_session(session_id, root)
        with self._folder.open(root) as records:
            known = records.run(run_id)
            if known is None or not known.is_open:
                self._update(root, records, skipped)
            for other in records.open_runs():
                if other != run_id and has_ended(other):
                    records.close_run(other)
            records.open_run(run_id, session_id)

    def record(
        self,
        root: str,
        run_id: RunId,
        *,
        skipped: frozenset[str] = frozenset(),
    ) -> FileChanges:
        """Record what changed since `begin`, and return all changes of a run.

        Later changes are not those of the run.

        Raises:
            StoreUnavailable: the folder cannot be read, or nothing can be stored.
        """
        if not self._folder.exists(root):
            return FileChanges()
        with self._folder.open(root) as records:
            run = records.run(run_id)
            if run is None:
                return FileChanges()
            if run.is_open:
                self._update(root, records, skipped)
                records.close_run(run_id)
            return _run_changes(records, run_id)

    def open_runs(self, root: str) -> list[str]:
        """Return the runs whose changes in a workspace are recorded now."""
        if not self._folder.exists(root):
            return []
        with self._folder.open(root) as records:
            return records.open_runs()

    def of_run(self, session_id: SessionId, run_id: RunId) -> FileChanges:
        """Return the changes of a run, none if it changed nothing.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        for root in self._folder.roots_of(session_id):
            with self._folder.open(root) as records:
                if records.run(run_id) is not None:
                    return _run_changes(records, run_id)
        return FileChanges()

    def of_session(self, session_id: SessionId) -> FileChanges:
        """Return the newest change of each file by runs of a session.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        found: list[FileChange] = []
        for root in self._folder.roots_of(session_id):
            with self._folder.open(root) as records:
                key = self._folder.key(root)
                found += [_view(each, key) for each in records.changes_of_session(session_id)]
        return FileChanges(tuple(found))

    def diff(self, session_id: SessionId, change_id: str) -> ChangeDiff:
        """Return the difference between the states of a file before and after a run.

        Raises:
            NotFound: the session has no such change.
            StoreUnavailable: it cannot be read.
        """
        with self._change(session_id, change_id) as (_, records, change):
            view = _view(change, change_id.partition("-")[0])
            if is_secret(change.path):
                return ChangeDiff(view, note="secret")
            before, after = _content(records, change.before), _content(records, change.after)
            if before is None or after is None:
                return ChangeDiff(view, note="not_kept")
            texts = _text(before), _text(after)
            if texts[0] is None or texts[1] is None:
                return ChangeDiff(view, note="binary")
            old = texts[0] if change.before.kind else None
            shown = unified_diff(view.path, old, texts[1])
            if not change.after.kind:
                shown = shown.replace(f"\n+++ b/{view.path}", "\n+++ /dev/null", 1)
            is_cut = len(shown) > MAX_DIFF_CHARACTERS
            return ChangeDiff(view, shown[:MAX_DIFF_CHARACTERS], note="cut" if is_cut else "")

    def undo(self, session_id: SessionId, change_id: str) -> FileChange:
        """Give a file the state that it had before a run.

        Raises:
            NotFound: the session has no such change.
            Conflict: the file changed since, was undone, or its content before was not kept.
            StoreUnavailable: the file cannot be written.
        """
        with self._change(session_id, change_id) as (root, records, change):
            view = _view(change, change_id.partition("-")[0])
            if change.is_undone:
                raise Conflict(f"The change of {view.path} was undone before.")
            before = _content(records, change.before)
            if before is None:
                raise Conflict(
                    f"The content of {view.path} before the run was not kept: it cannot be undone."
                )
            try:
                with _open_root(root) as folder:
                    state = self._restore(folder, change, before, view.path)
            except OSError as error:
                raise StoreUnavailable(
                    f"{view.path} cannot be written: {error.strerror or error}"
                ) from error
            if state.kind:
                records.save_files({change.path: state}, [])
            else:
                records.save_files({}, [change.path])
            records.set_undone(change.id)
            return msgspec.structs.replace(view, is_undone=True)

    def remove_session(self, session_id: SessionId) -> None:
        """Remove the changes of a session.

        Raises:
            StoreUnavailable: they cannot be removed.
        """
        self._folder.remove_session(session_id)

    @contextmanager
    def _change(
        self, session_id: SessionId, change_id: str
    ) -> Iterator[tuple[str, WorkspaceRecords, ChangeRecord]]:
        key, _, number = change_id.partition("-")
        if number.isdecimal() and len(number) <= _MAX_DIGITS:
            for root in self._folder.roots_of(session_id):
                if self._folder.key(root) == key:
                    with self._folder.open(root) as records:
                        change = records.change(session_id, int(number))
                        if change is not None:
                            yield root, records, change
                            return
        raise NotFound("This session has no such change.")

    def _update(self, root: str, records: WorkspaceRecords, skipped: frozenset[str]) -> None:
        """Walk a workspace and record what changed since the last walk for all open runs."""
        began = time.time_ns()
        was_complete, last_ns = records.last_walk()
        open_runs = records.open_runs()
        git = None if open_runs else GitContents(root)
        update = _Update(records, git, last_ns, was_complete=was_complete)
        try:
            with _open_root(root) as folder:
                report = walk(
                    folder, self._protected.protection(root), update.visit, skipped=skipped
                )
        except OSError as error:
            raise StoreUnavailable(
                f"The workspace cannot be looked through: {error.strerror or error}"
            ) from error
        gone = update.gone(report)
        if open_runs:
            update.load_git_contents(GitContents(root))
        records.save_files(update.states, gone)
        for run_id in open_runs:
            omitted = records.save_changes(run_id, update.changes)
            complete = report.is_complete and was_complete
            records.note_limits(run_id, omitted=omitted, is_complete=complete)
        records.set_walk(is_complete=report.is_complete, walked_ns=began)
        if update.changes:
            for run_id in open_runs:
                _count_lines(records, run_id)
            records.remove_unused_contents()

    def _restore(
        self, root: int, change: ChangeRecord, before: bytes, shown: str
    ) -> WatchedFileState:
        since = Conflict(
            f"{shown} changed since the run: it stays as it is. Undo later changes first, or change"
            " it by hand."
        )
        try:
            with open_parent(root, change.path, create=bool(change.before.kind)) as (folder, name):
                if not _is_now(folder, name, change.after):
                    raise since
                if not change.before.kind:
                    os.unlink(name, dir_fd=folder)
                    return ABSENT
                _write(folder, name, change.before, before)
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                return change.before._replace(identity=identity_of(status))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise since from error


class _Update:
    """What one walk finds, compared with the walk before it."""

    def __init__(
        self,
        records: WorkspaceRecords,
        git: GitContents | None,
        last_ns: int,
        *,
        was_complete: bool,
    ) -> None:
        self.states: dict[str, WatchedFileState] = {}
        self.changes: dict[str, tuple[WatchedFileState, WatchedFileState]] = {}
        self._records = records
        self._known = records.files()
        self._git = git
        self._last_ns = last_ns
        self._was_complete = was_complete
        self._seen: set[str] = set()
        self._reader = ContentReader(records.keep, records.kept_bytes())

    def visit(self, entry: FoundEntry) -> None:
        """Compare an entry with what was known of it."""
        known = self._known.get(entry.path)
        is_kept = known is None or bool(known.content) or known.kind != "file"
        if (
            known is not None
            and known.identity == identity_of(entry.status)
            and (is_kept or not self._reader.may_keep(entry.path, entry.status))
        ):
            self._seen.add(entry.path)
            return
        try:
            state = self._state(entry)
        except FileNotFoundError:
            return
        except OSError:  # not readable, or something else by now
            if stat.S_ISREG(entry.status.st_mode):
                identity = identity_of(entry.status)
                state = WatchedFileState("file", "", entry.status.st_size, 0, identity)
            else:
                return
        self._seen.add(entry.path)
        self.states[entry.path] = state
        if known is None:
            if not self._was_complete and entry.status.st_ctime_ns < self._last_ns:
                return  # the last walk did not get here
            self.changes[entry.path] = ABSENT, state
        elif known.identity != identity_of(entry.status) and not is_same(known, state):
            self.changes[entry.path] = known, state

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

    def load_git_contents(self, git: GitContents) -> None:
        """Keep the contents from the repository that changed files had before."""
        wanted = {
            path: before.content
            for path, (before, _) in self.changes.items()
            if before.content.startswith("git:")
        }
        for path, (content, name) in git.load(wanted).items():
            before, after = self.changes[path]
            if content is not None and len(content) == before.size:
                self._records.keep(name, content)
                before = before._replace(content=name)
            else:
                before = before._replace(content="")
            if before.content and before.content == after.content:
                del self.changes[path]
            else:
                self.changes[path] = before, after

    def _state(self, entry: FoundEntry) -> WatchedFileState:
        status = entry.status
        name = "" if self._git is None else self._git.content(entry.path, status)
        if name and not is_secret(entry.path):
            mode = status.st_mode & 0o777
            return WatchedFileState("file", name, status.st_size, mode, identity_of(status))
        return self._reader.read(entry.folder, entry.name, entry.path, status)


def _is_below(path: str, folders: frozenset[str]) -> bool:
    if not folders:
        return False
    at = path.find("/")
    while at >= 0:
        if path[:at] in folders:
            return True
        at = path.find("/", at + 1)
    return False


@contextmanager
def _open_root(root: str) -> Iterator[int]:
    folder = open_without_links(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


def _is_now(folder: int, name: str, expected: WatchedFileState) -> bool:
    """Return whether an entry of an open folder is in a state."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return not expected.kind
    if kind_of(status) != expected.kind or status.st_size != expected.size:
        return False
    if expected.kind == "link":
        return hash_of(os.fsencode(os.readlink(name, dir_fd=folder))) == expected.content
    if not expected.content:
        return identity_of(status) == expected.identity
    content, _ = read_file(folder, name, MAX_KEPT_FILE_BYTES)
    return content is not None and hash_of(content) == expected.content


def _write(folder: int, name: str, state: WatchedFileState, content: bytes) -> None:
    """Write a temporary entry in the same folder and rename it: a rename follows no link."""
    temporary = f".larkspur-{secrets.token_hex(8)}"
    try:
        if state.kind == "link":
            os.symlink(os.fsdecode(content), temporary, dir_fd=folder)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(descriptor, state.mode & 0o777)
                os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _content(records: WorkspaceRecords, state: WatchedFileState) -> bytes | None:
    if not state.kind:
        return b""
    return records.content(state.content) if state.content else None


def _text(content: bytes) -> str | None:
    """Return a content as text, None for a binary one."""
    return None if b"\0" in content[:_BINARY_BYTES] else content.decode("utf-8", "replace")


def _count_lines(records: WorkspaceRecords, run_id: str) -> None:
    deadline = time.monotonic() + MAX_COUNT_SECONDS
    for change in records.changes_of_run(run_id):
        if change.added is not None or is_secret(change.path):
            continue
        if time.monotonic() > deadline:
            return
        before, after = _content(records, change.before), _content(records, change.after)
        if before is None or after is None:
            continue
        old, new = _text(before), _text(after)
        if old is not None and new is not None and (count := _changed_lines(old, new)):
            records.set_lines(change.id, *count)


def _changed_lines(before: str, after: str) -> tuple[int, int] | None:
    """Return the added and the removed lines, None if there are too many to compare."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if not old or not new:
        return len(new), len(old)
    if len(old) * len(new) > _MAX_COMPARED:
        return None
    blocks = difflib.SequenceMatcher(None, old, new).get_matching_blocks()
    equal = sum(block.size for block in blocks)
    return len(new) - equal, len(old) - equal


def _run_changes(records: WorkspaceRecords, run_id: str) -> FileChanges:
    run = records.run(run_id)
    if run is None:
        return FileChanges()
    root = records.root()
    key = ChangeFolder.key(root)
    found = tuple(_view(each, key) for each in records.changes_of_run(run_id))
    return FileChanges(found, run.omitted, run.is_complete)


def _view(change: ChangeRecord, key: str) -> FileChange:
    kind: FileChangeKind = "changed" if change.after.kind else "deleted"
    if not change.before.kind:
        kind = "created"
    return FileChange(
        id=f"{key}-{change.id}",
        run_id=RunId(change.run_id),
        path=shown_path(change.path),
        kind=kind,
        size=change.after.size,
        added=change.added,
        removed=change.removed,
        is_undone=change.is_undone,
    )


def shown_path(path: str) -> str:
    """Return a path as text: bytes that are no UTF-8, and line breaks, as escapes."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
