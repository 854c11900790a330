"""Copies of workspaces: archives that travel between hosts, and worktrees for subtasks."""

from typing import NamedTuple, Protocol

import msgspec

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.ids import SessionId


class NotArchivable(LarkspurError):
    """A workspace cannot be kept as an archive. The message is the reason, after "they"."""


class PackedWorkspace(NamedTuple):
    """What was packed. `left_out` are the paths that an archive cannot contain."""

    files: int
    left_out: tuple[str, ...] = ()


class WorkspaceArchives(Protocol):
    """Packs and unpacks what a session has on this host. All methods block.

    The folder of a session has the versions of the archives that it is known to be equal to or
    newer than.
    """

    def versions(self, session_id: SessionId, /) -> frozenset[str]:
        """Return the versions that the folder of a session has, none without a folder."""
        ...

    def add_version(self, session_id: SessionId, version: str, /) -> None:
        """Record that the folder of a session is what an archive contains.

        Raises:
            StoreUnavailable: this cannot be written.
        """
        ...

    def fingerprint(self, session_id: SessionId, /) -> str:
        """Return a value that changes with the files of a session, "" if it has none.

        Raises:
            NotArchivable: the files cannot be listed, or are too many.
        """
        ...

    def pack(self, session_id: SessionId, descriptor: int, /) -> PackedWorkspace:
        """Write an archive of the files of a session to an empty open file.

        Raises:
            NotArchivable: the files are too many or too large, cannot be read, or belong to a git
                worktree.
            StoreUnavailable: the archive cannot be written.
        """
        ...

    def unpack(self, session_id: SessionId, descriptor: int | None, version: str, /) -> None:
        """Replace the files of a session by those of an archive, None for no files.

        Raises:
            StoreCorrupt: it is no archive of a workspace; the files are as before.
            StoreUnavailable: the files cannot be written.
        """
        ...


class EmptyWorkspaces(Protocol):
    """Finds and removes folders of sessions that have no files. The methods block."""

    def list_empty(self, before: float, /) -> list[SessionId]:
        """Return the sessions whose folders are empty and older than a time, seconds since 1970."""
        ...

    def remove_empty(self, session_id: SessionId, /) -> bool:
        """Remove the folders of a session if they are still empty; return whether they were."""
        ...


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
