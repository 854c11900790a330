"""Restoration of files, and files that are left unchanged."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from internal.workspace_changes.contents import ABSENT, WatchedFileState, hash_of
from internal.workspace_changes.records import ChangeRecord
from internal.workspace_changes.restoration import ChangedSince, restore

BEFORE, AFTER = b"before\n", b"after\n"


def file_state(content: bytes, mode: int = 0o644) -> WatchedFileState:
    return WatchedFileState("file", hash_of(content), len(content), mode)


def change(before: WatchedFileState, after: WatchedFileState, path: str = "a.txt") -> ChangeRecord:
    return ChangeRecord(7, "session", "run", path, before, after, None, None, is_undone=False)


@pytest.fixture
def root(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def put(folder: Path, content: bytes, mode: int = 0o644) -> Path:
    path = folder / "a.txt"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_content_and_permissions_come_back(folder: Path, root: int) -> None:
    path = put(folder, AFTER)
    state = restore(root, change(file_state(BEFORE, 0o600), file_state(AFTER)), BEFORE)
    assert path.read_bytes() == BEFORE
    assert path.stat().st_mode & 0o777 == 0o600
    assert state.identity.startswith(f"{path.stat().st_ino}:")


def test_a_deleted_file_comes_back_with_its_folders(folder: Path, root: int) -> None:
    restore(root, change(file_state(BEFORE), ABSENT, "deep/er/a.txt"), BEFORE)
    assert (folder / "deep/er/a.txt").read_bytes() == BEFORE


def test_a_link_comes_back_as_a_link(folder: Path, root: int) -> None:
    put(folder, AFTER)
    link = WatchedFileState("link", hash_of(b"../x"), 4)
    restore(root, change(link, file_state(AFTER)), b"../x")
    assert (folder / "a.txt").readlink() == Path("../x")


@pytest.mark.parametrize("now", [b"other!\n", BEFORE[:-1]])
def test_a_file_that_changed_stays(folder: Path, root: int, now: bytes) -> None:
    path = put(folder, now)
    with pytest.raises(ChangedSince):
        restore(root, change(file_state(BEFORE), file_state(AFTER)), BEFORE)
    assert path.read_bytes() == now


def test_a_folder_or_a_link_in_the_place_of_the_file_stays(
    folder: Path, root: int, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.write_bytes(AFTER)
    (folder / "a.txt").symlink_to(target)
    with pytest.raises(ChangedSince):
        restore(root, change(file_state(BEFORE), file_state(AFTER)), BEFORE)
    (folder / "a.txt").unlink()
    (folder / "a.txt").mkdir()
    with pytest.raises(ChangedSince):
        restore(root, change(ABSENT, file_state(AFTER)), b"")
    assert target.read_bytes() == AFTER


def test_what_a_killed_attempt_left_is_replaced(folder: Path, root: int) -> None:
    path = put(folder, AFTER)
    (folder / ".larkspur-undo-7").write_bytes(b"bef")
    undone = change(file_state(BEFORE), file_state(AFTER))
    restore(root, undone, BEFORE)
    inode = path.stat().st_ino
    restore(root, undone, BEFORE)  # killed before this was stored: nothing is written again
    assert path.stat().st_ino == inode
    assert [each.name for each in folder.iterdir()] == ["a.txt"]
    # a file that the run made, in a folder that is gone as well
    assert restore(root, change(ABSENT, file_state(AFTER), "gone/b.txt"), b"") == ABSENT


def test_a_folder_of_a_deleted_file_that_is_a_file_now_stays(folder: Path, root: int) -> None:
    (folder / "deep").write_text("a file\n")
    with pytest.raises((ChangedSince, OSError)):
        restore(root, change(file_state(BEFORE), ABSENT, "deep/a.txt"), BEFORE)
    assert (folder / "deep").read_text() == "a file\n"
