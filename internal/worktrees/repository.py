"""Checks of a repository that an agent may have written, before git reads it.

A repository may name places outside of itself: a `.git` file, links, alternates. Whoever works in
it could make a worktree of another repository with them, and read that. So such a repository has
no worktree.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.text import truncate
from internal.git.process import GitFailed, run_git

READ_TIMEOUT_SECONDS = 20.0
"""For reading a name: a repository can make git wait, such as by including a pipe."""
_LINK_FREE = ("objects", "refs")
_BARE = ("HEAD", "objects", "refs")


class Repository(NamedTuple):
    """A repository: its folder, and the commit that HEAD names."""

    folder: str
    head: str

    @property
    def git_folder(self) -> str:
        """The folder in which git keeps it."""
        return f"{self.folder}/.git"

    @property
    def objects(self) -> str:
        """The folder of its objects."""
        return f"{self.git_folder}/objects"


def check_repository(folder: str) -> None:
    """Check that the root of a repository is a folder, with everything in it.

    Raises:
        InvalidRequest: it is not; the sentence describes the folder.
    """
    root = Path(folder)
    named = truncate(folder, 200)
    git = root / ".git"
    if not os.path.lexists(git):
        raise InvalidRequest(
            _explain(root, named),
            reason_code="repository_unusable",
            repository=named,
            detail=_explain(root, named),
        )
    try:
        if not stat.S_ISDIR(git.lstat().st_mode):
            raise InvalidRequest(
                f"{named} is a worktree or submodule, or .git is a link: its repository is"
                " elsewhere, so it has no worktree.",
                reason_code="repository_elsewhere",
                repository=named,
            )
        if _is_shared(git / "commondir"):
            raise InvalidRequest(
                f"The repository {named} shares that of another folder.",
                reason_code="repository_shared",
                repository=named,
            )
        if os.path.lexists(git / "objects" / "info" / "alternates"):
            raise InvalidRequest(
                f"The repository {named} borrows the objects of another one, so it has no worktree."
                " `git repack -a -d` and removing .git/objects/info/alternates ends that.",
                reason_code="repository_borrows",
                repository=named,
            )
        _check_links(git, named)
    except OSError as error:
        raise InvalidRequest(
            f"{named} cannot be read: {error.strerror}.",
            reason_code="repository_unusable",
            repository=named,
            detail=error.strerror or "",
        ) from error


def read_repository(folder: str) -> Repository:
    """Return the repository whose root is a folder.

    Raises:
        InvalidRequest: it is not a repository, or has no commit.
    """
    check_repository(folder)
    variables = {"GIT_DIR": f"{folder}/.git"}
    try:
        head = run_git(
            *("rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}"),
            folder=folder,
            variables=variables,
            timeout_seconds=READ_TIMEOUT_SECONDS,
            only=(folder,),
        )
    except GitFailed as error:
        named = truncate(folder, 200)
        if error.code == 1:
            raise InvalidRequest(
                f"The repository {named} has no commit yet.",
                reason_code="repository_without_commit",
                repository=named,
            ) from error
        raise InvalidRequest(
            f"The repository {named} cannot be used: {error}",
            reason_code="repository_unusable",
            repository=named,
            detail=str(error),
        ) from error
    return Repository(folder, head.decode("ascii").strip())


def _is_shared(commondir: Path) -> bool:
    """Return True unless the file is missing, or names its own folder, as while a command runs."""
    try:
        file = os.open(commondir, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        return not stat.S_ISREG(os.fstat(file).st_mode) or os.read(file, 3) != b".\n"
    finally:
        os.close(file)


def _explain(root: Path, named: str) -> str:
    if all((root / name).exists() for name in _BARE):
        return f"{named} is a bare repository: it has no files to work with."
    for above in root.parents:
        if os.path.lexists(above / ".git"):
            return (
                f"{named} is a folder in the repository {above}: only the root of a repository has"
                " a worktree."
            )
    return f"{named} is not a git repository, so it has no worktree. Use the workspace own."


def _check_links(git: Path, named: str) -> None:
    """Check that no part of the repository that git reads is a symbolic link."""
    links = (
        git / name for name in ("HEAD", "config", "packed-refs", "shallow") if (git / name).exists()
    )
    found = next((link for link in links if link.is_symlink()), None)
    for name in _LINK_FREE:
        pending = [str(git / name)]
        if os.path.islink(pending[0]):  # noqa: PTH114 - text like the others
            found = git / name
        while pending and found is None:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        found = Path(entry.path)
                    elif entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
    if found is not None:
        raise InvalidRequest(
            f"In the repository {named}, {found.name} is a symbolic link.",
            reason_code="repository_link",
            repository=named,
            name=found.name,
        )
