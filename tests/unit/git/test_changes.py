"""Output of `/diff`, also for repositories written by an agent."""

import time
from pathlib import Path

import pytest

from internal.git.changes import uncommitted_changes
from tests.support.git_repository import git, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project", a_txt="one\n", _gitignore="built\n")


def test_changes_and_new_files_are_shown(repository: Path) -> None:
    assert not uncommitted_changes(str(repository))
    (repository / "a.txt").write_text("two\n")
    (repository / "staged.txt").write_text("staged\n")
    git(repository, "add", "staged.txt")
    (repository / "sub").mkdir()
    for name in ("new.txt", "built", "excluded", "sub/c.txt"):
        (repository / name).write_text("x")
    (repository / ".git" / "info" / "exclude").write_text("excluded\n")
    shown = uncommitted_changes(str(repository))
    assert shown is not None
    assert "-one\n+two" in shown
    assert "+staged" in shown
    assert shown.endswith("@@ new.txt\n@@ sub/c.txt")
    assert uncommitted_changes(str(repository / "sub")) == "@@ c.txt"
    assert git(repository, "status", "--short", "a.txt") == "M a.txt"  # the index stays as it was


@pytest.mark.parametrize("form", ["worktree", "split index", "sha256"])
def test_other_forms_of_repositories_are_read(tmp_path: Path, repository: Path, form: str) -> None:
    if form == "worktree":
        git(repository, "worktree", "add", "--quiet", str(tmp_path / "tree"))
        repository = tmp_path / "tree"
    elif form == "split index":
        git(repository, "update-index", "--split-index")
    else:
        repository = tmp_path / "sha256"
        repository.mkdir()
        git(repository, "init", "--quiet", "--object-format=sha256")
        (repository / "a.txt").write_text("one\n")
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "--message", "First")
    (repository / "a.txt").write_text("two\n")
    assert "-one\n+two" in (uncommitted_changes(str(repository)) or "")


def test_a_change_of_equal_size_in_the_second_of_the_commit_is_shown(repository: Path) -> None:
    """Git takes such a file for unchanged if the index is newer than the file."""
    file = repository / "a.txt"
    for number in range(100):
        file.write_text(f"{number:03}\n")
        git(repository, "add", "a.txt")
        git(repository, "commit", "--quiet", "--message", "Next")
        committed = file.stat()
        file.write_text("new\n")
        changed = file.stat()
        if int(committed.st_mtime) == int(changed.st_mtime) == int(changed.st_ctime):
            break
    else:
        pytest.fail("no commit and change fell into one second")
    while int(time.time()) == int(changed.st_mtime):
        pass  # after this second a copy of the index is newer than the file
    assert f"-{number:03}\n+new" in (uncommitted_changes(str(repository)) or "")


def test_without_a_commit_there_is_no_answer(tmp_path: Path) -> None:
    assert uncommitted_changes(str(tmp_path)) is None
    git(tmp_path, "init", "--quiet")
    assert uncommitted_changes(str(tmp_path)) is None


def test_nothing_that_a_repository_configures_runs(tmp_path: Path, repository: Path) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 $* >> {ran}\ncat\n")
    program.chmod(0o755)
    nested = make_repository(repository / "nested", a_txt="one\n")
    for folder in (repository, nested):
        (folder / ".gitattributes").write_text("* filter=z diff=z merge=z\n")
        for name in ("a.txt", "b.txt"):
            (folder / name).write_text("two\n")
        git(folder, "add", "--all")  # stages the nested one as a submodule
        keys = ("filter.z.clean", "filter.z.process", "diff.z.textconv", "diff.z.command")
        for key in (*keys, "core.fsmonitor", "core.pager", "pager.diff", "diff.external"):
            git(folder, "config", key, str(program))
        git(folder, "config", "filter.z.required", "true")
        (folder / "a.txt").write_text("three\n")
    shown = uncommitted_changes(str(repository))
    assert "+three" in (shown or "")
    assert not ran.exists()
