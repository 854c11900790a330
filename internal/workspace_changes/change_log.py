"""The recorded changes of runs, their diffs and their undoing. The methods block."""

import difflib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from internal.workspace_changes.comparison import Selection, WalkComparison, load_git_contents
from internal.workspace_changes.contents import WatchedFileState, is_secret
from internal.workspace_changes.git_contents import GitContents
from internal.workspace_changes.records import ChangeFolder, ChangeRecord, WorkspaceRecords
from internal.workspace_changes.restoration import ChangedSince, restore
from internal.workspace_changes.walk import walk

MAX_COUNT_SECONDS = 3.0
"""Time limit of counting changed lines after a walk; the other counts stay unknown."""
MAX_DIFF_CHARACTERS = 400_000
_MAX_COMPARED = 4_000_000
"""Pairs of lines that are compared to count the changed ones."""
_BINARY_BYTES = 8_000
_MAX_DIGITS = 18
"""Digits of an integer of SQLite."""


class WorkspaceChangeLog:
    """Records the changes that runs make in their workspaces.

    Args:
        folder: the folder that has the records.
        protected: the files of Larkspur itself, which are never read.
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
        named: frozenset[str] | None = None,
        skipped: frozenset[str] = frozenset(),
        has_ended: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Store the content of a workspace as the state before a run, or before more of its calls.

        Changes since the last walk belong to the open runs, including this one if it began before.
        Runs for which `has_ended` is true are closed. Only the contents of the files `named` are
        read; all contents if it is None.

        Raises:
            StoreUnavailable: the folder cannot be read, or nothing can be stored.
        """
        self._folder.add_session(session_id, root)
        with self._folder.open(root) as records:
            self._update(root, records, skipped, _selection(named))
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
        """Record the changes since `begin`, and return all changes of a run.

        Later changes do not belong to the run.

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
                self._update(root, records, skipped, _is_changed)
                records.close_run(run_id)
            return _run_changes(records, run_id)

    def open_runs(self, root: str) -> list[str]:
        """Return the runs whose changes in a workspace are recorded now."""
        if not self._folder.exists(root):
            return []
        with self._folder.open(root, for_reading=True) as records:
            return records.open_runs()

    def of_run(self, session_id: SessionId, run_id: RunId) -> FileChanges:
        """Return the changes of a run, none if it changed nothing.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        for root in self._folder.roots_of(session_id):
            with self._folder.open(root, for_reading=True) as records:
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
            with self._folder.open(root, for_reading=True) as records:
                key = self._folder.key(root)
                found += [_view(each, key) for each in records.changes_of_session(session_id)]
        return FileChanges(tuple(found))

    def diff(self, session_id: SessionId, change_id: str) -> ChangeDiff:
        """Return the difference between the states of a file before and after a run.

        Raises:
            NotFound: the session has no such change.
            StoreUnavailable: it cannot be read.
        """
        with self._change(session_id, change_id, for_reading=True) as (_, records, change):
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
            shown = _mode_lines(change) + unified_diff(view.path, old, texts[1])
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
                raise Conflict(
                    f"The change of {view.path} was undone before.",
                    reason_code="change_undone",
                    path=view.path,
                )
            before = _content(records, change.before)
            if before is None:
                raise Conflict(
                    f"The content of {view.path} before the run was not kept: it cannot be undone.",
                    reason_code="content_not_kept",
                    path=view.path,
                )
            try:
                with _open_root(root) as folder:
                    if os.fstat(folder).st_ino != records.inode():
                        raise Conflict(
                            f"The workspace is another folder by now: {view.path} stays as it is.",
                            reason_code="workspace_replaced",
                            path=view.path,
                        )
                    state = restore(folder, change, before)
            except ChangedSince as error:
                raise Conflict(
                    f"{view.path} changed since the run: it stays as it is. Undo later changes"
                    " first, or change it by hand.",
                    reason_code="changed_since",
                    path=view.path,
                ) from error
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
        self, session_id: SessionId, change_id: str, *, for_reading: bool = False
    ) -> Iterator[tuple[str, WorkspaceRecords, ChangeRecord]]:
        key, _, number = change_id.partition("-")
        if number.isdecimal() and len(number) <= _MAX_DIGITS:
            for root in self._folder.roots_of(session_id):
                if self._folder.key(root) == key:
                    with self._folder.open(root, for_reading=for_reading) as records:
                        change = records.change(session_id, int(number))
                        if change is not None:
                            yield root, records, change
                            return
        raise NotFound("This session has no such change.", reason_code="no_change")

    def _update(
        self, root: str, records: WorkspaceRecords, skipped: frozenset[str], reads: Selection
    ) -> None:
        """Walk a workspace and record the changes since the last walk for all open runs."""
        began = time.time_ns()
        was_complete, last_ns = records.last_walk()
        open_runs = records.open_runs()
        try:
            with _open_root(root) as folder:
                inode = os.fstat(folder).st_ino
                if was_replaced := records.inode() not in {0, inode}:
                    records.forget_files()
                compared = WalkComparison(
                    records,
                    GitContents(root),
                    reads,
                    last_ns=last_ns,
                    was_complete=was_complete,
                    has_open_runs=bool(open_runs),
                )
                protection = self._protected.protection(root)
                report = walk(folder, protection, compared.visit, skipped=skipped)
        except OSError as error:
            raise StoreUnavailable(
                f"The workspace cannot be looked through: {error.strerror or error}"
            ) from error
        gone = compared.gone(report)
        # files in another folder were not made by a run
        changes = {} if was_replaced else compared.changes
        if open_runs:
            load_git_contents(changes, GitContents(root), records)
        records.save_files(compared.states, gone)
        for run_id in open_runs:
            omitted = records.save_changes(run_id, changes)
            complete = report.is_complete and was_complete and not was_replaced
            records.note_limits(run_id, omitted=omitted, is_complete=complete)
        records.set_walk(is_complete=report.is_complete, walked_ns=began, inode=inode)
        if changes:
            for run_id in open_runs:
                _count_lines(records, run_id)
            records.remove_unused_contents()


def _selection(named: frozenset[str] | None) -> Selection:
    return _is_any if named is None else lambda path, _: path in named


def _is_any(_path: str, _is_changed: bool, /) -> bool:
    return True


def _is_changed(_path: str, is_changed: bool, /) -> bool:
    return is_changed


@contextmanager
def _open_root(root: str) -> Iterator[int]:
    folder = open_without_links(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


def _content(records: WorkspaceRecords, state: WatchedFileState) -> bytes | None:
    if not state.kind:
        return b""
    return records.content(state.content) if state.content else None


def _mode_lines(change: ChangeRecord) -> str:
    """Return how the permissions of a file changed in the form of git, "" if they did not."""
    before, after = change.before, change.after
    if before.kind != "file" or after.kind != "file" or before.mode == after.mode:
        return ""
    return f"old mode 100{before.mode:o}\nnew mode 100{after.mode:o}\n"


def _text(content: bytes) -> str | None:
    """Return a content as text, None if it is binary."""
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
    """Return a path as text: bytes that are not UTF-8, and line breaks, as escapes."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
