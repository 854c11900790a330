"""A command exchanges a repository with a link to another one while a worktree of it is made."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from internal.agent.domain.errors import LarkspurError
from internal.git.process import GitFailed, run_git
from internal.worktrees.worktrees import GitWorktrees
from tests.support.exchanged_folders import exchanging
from tests.support.git_repository import make_repository

pytestmark = pytest.mark.needs("landlock")


@pytest.mark.parametrize("name", ["objects", "refs"])
def test_git_reads_only_what_it_is_given(tmp_path: Path, name: str) -> None:
    own = make_repository(tmp_path / "own", a_txt="own\n")
    private = make_repository(tmp_path / "private", a_txt="canary\n")
    for each in ("objects", "refs"):
        place, source = own / ".git" / each, private / ".git" / each
        shutil.rmtree(place)
        if each == name:
            place.symlink_to(source)
        else:
            shutil.copytree(source, place)
    show = ("cat-file", "-p", "HEAD:a.txt")
    variables = {"GIT_DIR": f"{own}/.git"}
    assert run_git(*show, folder=str(own), variables=variables) == b"canary\n"
    with pytest.raises(GitFailed):
        run_git(*show, folder=str(own), variables=variables, only=(str(own),))


def test_git_is_not_started_below_a_link(tmp_path: Path) -> None:
    make_repository(tmp_path / "own", a_txt="own\n")
    (tmp_path / "link").symlink_to(tmp_path / "own")
    with pytest.raises(GitFailed, match="was not started"):
        run_git("status", folder=str(tmp_path / "own"), only=(str(tmp_path / "link"),))


@pytest.mark.parametrize("place", [".", ".git", ".git/objects"])
def test_a_worktree_has_no_file_of_another_repository(tmp_path: Path, place: str) -> None:
    own = make_repository(tmp_path / "own", a_txt="own\n")
    private = make_repository(tmp_path / "private", a_txt="canary\n")
    exchanged = own / place
    (exchanged.parent / "link").symlink_to(private / place)
    worktrees = GitWorktrees()
    with exchanging(exchanged.parent, exchanged.name, "link"):
        for number in range(8):
            folder = tmp_path / "worktrees" / f"session-1.task-{number}"
            with suppress(LarkspurError):
                worktrees.create(str(own), str(folder))
                assert (folder / "a.txt").read_text() == "own\n"
