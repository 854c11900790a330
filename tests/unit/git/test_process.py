"""Running git: bounded in time and output, in an environment of its own."""

import os
from pathlib import Path

import pytest

from internal.git.process import GitFailed, OutputTooLarge, run_git
from tests.support.git_repository import git, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project", a_txt="x" * 100_000)


def test_input_and_output_pass_at_once(repository: Path) -> None:
    names = "".join(f"name-{number}\n" for number in range(20_000)).encode()
    own = {"GIT_DIR": str(repository / ".git"), "GIT_WORK_TREE": str(repository)}
    shown = run_git(
        "cat-file", "--batch-check", folder=str(repository), variables=own, content=names
    )
    assert shown.count(b" missing\n") == 20_000


def test_too_much_output_ends_git(repository: Path) -> None:
    with pytest.raises(OutputTooLarge, match="more than 1,000 bytes"):
        run_git("show", "HEAD:a.txt", folder=str(repository), max_bytes=1_000)


def test_a_failure_has_the_first_line_and_the_code(repository: Path) -> None:
    with pytest.raises(GitFailed, match=r"git rev-parse failed: fatal: .*nothing") as caught:
        run_git("rev-parse", "nothing", folder=str(repository))
    assert caught.value.code == 128


def test_a_repository_that_makes_git_wait_is_given_up(repository: Path) -> None:
    os.mkfifo(repository / "pipe")
    git(repository, "config", "include.path", str(repository / "pipe"))
    with pytest.raises(GitFailed, match="git status takes too long"):
        run_git("status", folder=str(repository), timeout_seconds=0.5)


def test_git_gets_no_variable_of_this_process(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "alias.evil")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "!false")
    assert run_git("rev-parse", "--git-dir", folder=str(repository)) == b".git\n"
    assert b"evil" not in run_git("config", "--list", folder=str(repository))
