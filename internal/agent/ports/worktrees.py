"""Copies of git repositories in which subtasks work."""

from typing import Protocol

import msgspec


class WorktreeChanges(msgspec.Struct, frozen=True):
    """What was changed in a worktree: a commit on its branch, and the same as a patch.

    `base` is the commit that the worktree began with. `patch` is a diff as git writes it, with
    binary files, after a line that says where it is from; empty if it is too large. `left_out` says
    what the commit does not contain, such as large files.
    """

    branch: str
    base: str
    commit: str
    paths: tuple[str, ...]
    patch: bytes
    left_out: tuple[str, ...] = ()


class Worktrees(Protocol):
    """Makes worktrees and takes their changes over. All methods block.

    A repository is not trusted, and a worktree even less: nothing that they configure is run.
    """

    def describe(self, repository: str, /) -> str:
        """Return a sentence about what a worktree of a folder will begin with.

        Raises:
            InvalidRequest: there can be none, such as of a folder that is not a repository.
        """
        ...

    def create(self, repository: str, folder: str, /) -> None:
        """Make a worktree of the newest commit of a repository, unless the folder is one already.

        After an interruption there is no folder, or a complete one.

        Raises:
            InvalidRequest: there can be no worktree of the repository.
            StoreUnavailable: the folder cannot be written.
        """
        ...

    def objects(self, folder: str, /) -> str:
        """Return the folder that commands need to read for git in a worktree, "" without one."""
        ...

    def collect(self, folder: str, /) -> WorktreeChanges | None:
        """Commit what is in a worktree now to its branch in the repository; None for no change.

        It may be repeated, also after an interruption.

        Raises:
            Conflict: this is not possible, such as without the repository.
        """
        ...

    def check(self, repository: str, patch: bytes, /) -> tuple[str, ...]:
        """Return the paths that a patch changes in a repository.

        Raises:
            InvalidRequest: the folder is not a repository.
            Conflict: a change does not fit, or was made already.
        """
        ...

    def apply(self, repository: str, patch: bytes, /) -> None:
        """Change the files of a repository as a patch says.

        The index and the branches stay as they are.

        Raises:
            InvalidRequest: the folder is not a repository.
            Conflict: a change does not fit, or was made already. No file was changed.
        """
        ...

    def release(self, folder: str, /) -> None:
        """Remove the branch of a worktree and what is known of it, before the folder is removed.

        A branch that somebody else changed, or that is checked out, stays.
        """
        ...
