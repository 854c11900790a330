"""The files of a workspace for people: listed, searched and read without leaving it."""

import os
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, NotFound
from internal.tools.protected_paths import ProtectedPaths
from internal.workspace_changes.tree import MAX_ENTRIES_OF_FOLDER, MAX_FOUND, OpenWorkspaceTree


@pytest.fixture
def tree(protected: ProtectedPaths) -> OpenWorkspaceTree:
    return OpenWorkspaceTree(protected)


def test_a_folder_lists_folders_first_then_files_and_links(
    tree: OpenWorkspaceTree, folder: Path
) -> None:
    (folder / "z").mkdir()
    for name in (".hidden", "报告.md", "B.txt", "a.txt", ".env", "new\nline"):
        (folder / name).write_text("12345")
    (folder / "out").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    page = tree.entries(str(folder), "")
    assert [(each.path, each.kind, each.is_readable) for each in page.entries] == [
        ("z", "folder", True),
        (".env", "file", False),
        (".hidden", "file", True),
        ("a.txt", "file", True),
        ("B.txt", "file", True),
        ("new\\nline", "file", False),
        ("out", "link", False),
        ("报告.md", "file", True),
    ]
    assert page.is_complete
    assert tree.read(str(folder), "报告.md") == b"12345"


@pytest.mark.parametrize(
    "path",
    ["../secret", "out/passwd", "/etc/passwd", "a/../../secret", "pipe", "", "a\0b", "\udc80"],
)
def test_nothing_outside_and_no_device_is_read(
    tree: OpenWorkspaceTree, folder: Path, tmp_path: Path, path: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder / "out").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    with pytest.raises(NotFound):
        tree.read(str(folder), path)
    if path:
        with pytest.raises(NotFound):
            tree.entries(str(folder), path)


def test_secrets_and_large_files_are_not_shown(tree: OpenWorkspaceTree, folder: Path) -> None:
    (folder / ".env").write_text("TOKEN=1")
    with (folder / "large").open("wb") as file:
        file.truncate(1 << 33)
    for name, reason in ((".env", "holds secrets"), ("large", "larger than 1,000 KB")):
        with pytest.raises(Conflict, match=reason):
            tree.read(str(folder), name)


def test_a_large_folder_and_many_finds_are_said_to_be_cut(
    tree: OpenWorkspaceTree, folder: Path
) -> None:
    for number in range(MAX_ENTRIES_OF_FOLDER + 1):
        (folder / f"{number:05}.txt").touch()
    page = tree.entries(str(folder), "")
    assert (len(page.entries), page.is_complete) == (MAX_ENTRIES_OF_FOLDER, False)
    found = tree.search(str(folder), ".TXT")
    assert (len(found.entries), found.is_complete) == (MAX_FOUND, False)
    one = tree.search(str(folder), "00007")
    assert ([each.path for each in one.entries], one.is_complete) == (["00007.txt"], True)


def test_a_workspace_that_became_a_link_is_not_shown(
    tree: OpenWorkspaceTree, folder: Path, tmp_path: Path
) -> None:
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(NotFound):
        tree.entries(str(folder), "")
    with pytest.raises(NotFound):
        tree.search(str(folder), "a")
