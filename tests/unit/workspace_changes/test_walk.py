"""Walks of folders with links, devices, folders that may not be read, and limits."""

import os
import socket
from pathlib import Path

import pytest

from internal.tools.protected_paths import ProtectedPaths
from internal.workspace_changes.walk import MAX_DEPTH, WalkReport, open_parent, walk


def paths_below(
    folder: Path, protected: ProtectedPaths, skipped: frozenset[str] = frozenset()
) -> tuple[list[str], WalkReport]:
    found: list[str] = []
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        report = walk(
            opened,
            protected.protection(str(folder)),
            lambda entry: found.append(entry.path),
            skipped=skipped,
        )
    finally:
        os.close(opened)
    return found, report


def test_files_and_links_are_found_and_nothing_else(
    folder: Path, protected: ProtectedPaths
) -> None:
    (folder / "b").mkdir()
    (folder / "b" / "新\nfile").write_text("")
    (folder / "link").symlink_to("/etc")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    (folder / ".larkspur-temporary").write_text("")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))
    assert paths_below(folder, protected) == (
        ["b/新\nfile", "link", "loop"],
        WalkReport(frozenset(), is_complete=True),
    )


def test_folders_that_are_not_entered_are_named(folder: Path, protected: ProtectedPaths) -> None:
    for name in ("node_modules", "given", "cache", "kept"):
        (folder / name).mkdir()
        (folder / name / "a.txt").write_text("")
    (folder / "cache" / "CACHEDIR.TAG").write_text("")
    found, report = paths_below(folder, protected, frozenset({"given"}))
    assert found == ["kept/a.txt"]
    assert report == WalkReport(frozenset({"node_modules", "given", "cache"}), is_complete=True)


def test_a_nest_of_folders_ends_at_the_limit(folder: Path, protected: ProtectedPaths) -> None:
    deepest = folder.joinpath(*["d"] * (MAX_DEPTH + 3))
    deepest.mkdir(parents=True)
    (deepest / "a.txt").write_text("")
    found, report = paths_below(folder, protected)
    assert found == []
    assert report.unread == {"/".join(["d"] * MAX_DEPTH)}


def test_a_folder_that_may_not_be_read_is_named(folder: Path, protected: ProtectedPaths) -> None:
    (folder / "locked").mkdir(mode=0)
    (folder / "seen.txt").write_text("")
    # the superuser may read every folder
    may_read = os.access(folder / "locked", os.R_OK | os.X_OK)
    found, report = paths_below(folder, protected)
    assert found == ["seen.txt"]
    assert report == WalkReport(frozenset(() if may_read else {"locked"}), is_complete=True)


def test_a_parent_is_opened_through_no_link(folder: Path, tmp_path: Path) -> None:
    (folder / "link").symlink_to(tmp_path)
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with pytest.raises(NotADirectoryError), open_parent(root, "link/a.txt", create=True):
            pass
        with pytest.raises(FileNotFoundError), open_parent(root, "new/a.txt"):
            pass
        with open_parent(root, "new/deep/a.txt", create=True) as (opened, name):
            assert os.path.samestat(os.fstat(opened), (folder / "new/deep").stat())
            assert name == "a.txt"
    finally:
        os.close(root)
