"""Walks that are compared with the walk before them."""

import os
import time
from pathlib import Path

import pytest

from internal.tools.protected_paths import ProtectedPaths
from internal.workspace_changes.comparison import Selection, WalkComparison
from internal.workspace_changes.git_contents import GitContents
from internal.workspace_changes.records import ChangeFolder
from internal.workspace_changes.walk import WalkReport, walk


class Comparisons:
    """Walks of one folder in a row."""

    def __init__(self, folder: Path, protected: ProtectedPaths) -> None:
        self.folder = folder
        self.changes = ChangeFolder(folder.parent / "changes")
        self._protection = protected.protection(str(folder))

    def look(self, reads: Selection, *, was_complete: bool = True) -> dict[str, tuple[str, str]]:
        """Return the kinds of the files that changed before and after, and store the walk."""
        with self.changes.open(str(self.folder)) as records:
            compared = WalkComparison(
                records,
                GitContents(str(self.folder)),
                reads,
                last_ns=time.time_ns(),
                was_complete=was_complete,
                has_open_runs=True,
            )
            opened = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                gone = compared.gone(walk(opened, self._protection, compared.visit))
            finally:
                os.close(opened)
            records.save_files(compared.states, gone)
        pairs = compared.changes.items()
        return {path: (before.kind, after.kind) for path, (before, after) in pairs}

    def known(self) -> dict[str, bool]:
        """Return whether the content of each known file is kept."""
        with self.changes.open(str(self.folder)) as records:
            return {path: bool(state.content) for path, state in records.files().items()}


@pytest.fixture
def looks(folder: Path, protected: ProtectedPaths) -> Comparisons:
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(name)
    return Comparisons(folder, protected)


def test_contents_are_read_only_where_they_are_wanted(looks: Comparisons) -> None:
    looks.look(lambda path, _: path == "a.txt")
    assert looks.known() == {"a.txt": True, "b.txt": False}
    looks.look(lambda _path, _changed: True)
    assert looks.known() == {"a.txt": True, "b.txt": True}


def test_new_changed_and_deleted_files_are_changes(looks: Comparisons) -> None:
    looks.look(lambda *_: True)
    assert looks.look(lambda *_: True) == {}
    (looks.folder / "a.txt").write_text("other text")
    (looks.folder / "b.txt").unlink()
    (looks.folder / "c.txt").symlink_to("a.txt")
    assert looks.look(lambda _, is_changed: is_changed) == {
        "a.txt": ("file", "file"),
        "b.txt": ("file", ""),
        "c.txt": ("", "link"),
    }


def test_after_a_walk_that_was_not_complete_old_files_are_not_new(looks: Comparisons) -> None:
    assert looks.look(lambda *_: True, was_complete=False) == {}


def test_nothing_is_gone_in_folders_that_were_not_read(looks: Comparisons, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "c.txt").write_text("c")
    looks.look(lambda *_: True)
    with looks.changes.open(str(folder)) as records:
        for report, gone in (
            (WalkReport(frozenset({"sub"}), is_complete=True), ["a.txt", "b.txt"]),
            (WalkReport(frozenset(), is_complete=False), []),
        ):
            compared = WalkComparison(
                records,
                GitContents(str(folder)),
                lambda *_: True,
                last_ns=0,
                was_complete=True,
                has_open_runs=True,
            )
            assert compared.gone(report) == gone
