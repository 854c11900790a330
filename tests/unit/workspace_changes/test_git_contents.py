"""Contents that a repository has, read from its index and objects alone."""

import os
import subprocess
from pathlib import Path

import pytest

from internal.workspace_changes.contents import hash_of
from internal.workspace_changes.git_contents import GitContents


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(folder: Path) -> Path:
    for name in ("a.txt", "new\nline", "b/新.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{name} committed\n")
        os.utime(folder / name, (1_000_000_000, 1_000_000_000))
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    return folder


def test_tracked_files_that_did_not_change_have_contents(repository: Path) -> None:
    contents = GitContents(str(repository))
    wanted = {
        name: contents.content(name, (repository / name).lstat())
        for name in ("a.txt", "new\nline", "b/新.txt")
    }
    assert all(name.startswith("git:") for name in wanted.values())
    for name, loaded in contents.load(wanted).items():
        expected = f"{name} committed\n".encode()
        assert loaded == (expected, hash_of(expected))


def test_changed_and_unknown_files_have_none(repository: Path) -> None:
    (repository / "a.txt").write_text("changed\n")
    (repository / "untracked").write_text("x\n")
    contents = GitContents(str(repository))
    for name in ("a.txt", "untracked"):
        assert contents.content(name, (repository / name).lstat()) == ""


@pytest.mark.parametrize("index", [b"", b"DIRC\0\0\0\2garbage", b"\0" * 100])
def test_a_damaged_index_is_no_repository(repository: Path, index: bytes) -> None:
    status = (repository / "a.txt").lstat()
    (repository / ".git/index").write_bytes(index)
    assert GitContents(str(repository)).content("a.txt", status) == ""


def test_a_repository_through_a_link_and_missing_objects_give_nothing(
    repository: Path, tmp_path: Path
) -> None:
    gone = {"a.txt": "git:" + "0" * 40}
    assert GitContents(str(repository)).load(gone) == {"a.txt": (None, "")}
    status = (repository / "a.txt").lstat()
    (repository / ".git").rename(tmp_path / "moved")
    (repository / ".git").symlink_to(tmp_path / "moved")
    assert GitContents(str(repository)).content("a.txt", status) == ""
