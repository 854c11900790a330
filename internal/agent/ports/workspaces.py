"""Copies of workspaces, such as archives that travel between hosts, and changes in them."""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import msgspec

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.ids import RunId, SessionId


class NotArchivable(LarkspurError):
    """A workspace cannot be kept as an archive. The message is the reason, after "they"."""


class PackedWorkspace(NamedTuple):
    """Result of packing. `left_out` are the paths that an archive cannot contain."""

    files: int
    left_out: tuple[str, ...] = ()


class WorkspaceArchives(Protocol):
    """Packs and unpacks the files of a session on this host. All methods block.

    The folder of a session records the archive versions that it equals or is newer than.
    """

    def versions(self, session_id: SessionId, /) -> frozenset[str]:
        """Return the versions that the folder of a session has, none without a folder."""
        ...

    def add_version(self, session_id: SessionId, version: str, /) -> None:
        """Record that the folder of a session has the contents of an archive.

        Raises:
            StoreUnavailable: the record cannot be written.
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
        """Replace the files of a session by the files of an archive; None removes them.

        Raises:
            StoreCorrupt: it is not an archive of a workspace; the files are as before.
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
    """The changes in a worktree: a commit on its branch, and the same as a patch.

    `base` is the commit that the worktree began with. `patch` is a diff as git writes it, with
    binary files, after a line with its source; empty if it is too large. `left_out` are sentences
    about files that the commit does not contain, such as large files.
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
        """Return a sentence about the initial content of a worktree of a folder.

        Raises:
            InvalidRequest: a worktree is impossible, such as for a folder that is not a repository.
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
        """Commit the content of a worktree to its branch in the repository; None if unchanged.

        It may be repeated, even after an interruption.

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
        """Apply a patch to the files of a repository.

        The index and the branches stay unchanged.

        Raises:
            InvalidRequest: the folder is not a repository.
            Conflict: a change does not fit, or was made already. No file was changed.
        """
        ...

    def release(self, folder: str, /) -> None:
        """Remove the branch and the record of a worktree, before the folder is removed.

        A branch that somebody else changed, or that is checked out, stays.
        """
        ...


FileChangeKind = Literal["created", "changed", "deleted"]


class FileChange(msgspec.Struct, frozen=True):
    """A file of a workspace that a run made, changed or deleted.

    `path` starts at the top of the workspace, with escapes for bytes that are not text. `size` is
    the size after the run, in bytes. `added` and `removed` are lines, None where unknown, as for a
    binary file.
    """

    id: str
    run_id: RunId
    path: str
    kind: FileChangeKind
    size: int
    added: int | None
    removed: int | None
    is_undone: bool = False


class FileChanges(msgspec.Struct, frozen=True):
    """Changed files in the order of their paths.

    `omitted` counts further changes that are not kept. `is_complete` is False if the workspace was
    too large to be walked completely, or replaced.
    """

    changes: tuple[FileChange, ...] = ()
    omitted: int = 0
    is_complete: bool = True


class ChangeDiff(msgspec.Struct, frozen=True):
    """The difference between the states of a file before and after a run.

    `note` is the reason why `text` is empty or cut: `secret` by its name, `binary`, `not_kept`
    because the file is too large, or `cut`.
    """

    change: FileChange
    text: str = ""
    note: Literal["", "secret", "binary", "not_kept", "cut"] = ""


class TreeEntry(msgspec.Struct, frozen=True):
    """A file, folder or link of a workspace. `size` is in bytes.

    `is_readable` is False for a file whose content is not shown, such as one with secrets.
    """

    path: str
    kind: Literal["file", "folder", "link"]
    size: int = 0
    is_readable: bool = True


class TreePage(msgspec.Struct, frozen=True):
    """Entries of a workspace in the order of their names; `is_complete`: there are no others."""

    entries: tuple[TreeEntry, ...]
    is_complete: bool = True


class WorkspaceChanges(Protocol):
    """Records the changes that runs make in their workspaces. All methods block.

    Every method raises StoreUnavailable if a workspace cannot be looked through or the records
    cannot be read or written.
    """

    def begin(
        self,
        root: str,
        run_id: RunId,
        session_id: SessionId,
        /,
        *,
        named: frozenset[str] | None = None,
        skipped: frozenset[str] = frozenset(),
        has_ended: Callable[[str], bool] = ...,
    ) -> None:
        """Store the content of a workspace as the state before a run, or before more of its calls.

        Changes since the last walk belong to the open runs, including this one if it began before.
        Runs for which `has_ended` is true are closed. Only the contents of the files `named` are
        read; all contents if it is None. `skipped` are paths of folders that are not entered.
        """
        ...

    def record(
        self,
        root: str,
        run_id: RunId,
        /,
        *,
        skipped: frozenset[str] = frozenset(),
    ) -> FileChanges:
        """Record the changes since `begin`, and return all changes of the run.

        Later changes do not belong to the run.
        """
        ...

    def open_runs(self, root: str, /) -> list[str]:
        """Return the runs whose changes in a workspace are recorded now."""
        ...

    def of_run(self, session_id: SessionId, run_id: RunId, /) -> FileChanges:
        """Return the changes of a run, none if it changed nothing."""
        ...

    def of_session(self, session_id: SessionId, /) -> FileChanges:
        """Return the newest change of each file by runs of a session."""
        ...

    def diff(self, session_id: SessionId, change_id: str, /) -> ChangeDiff:
        """Return the difference between the states of a file before and after a run.

        Raises:
            NotFound: the session has no such change.
        """
        ...

    def undo(self, session_id: SessionId, change_id: str, /) -> FileChange:
        """Give a file the state that it had before a run.

        Raises:
            NotFound: the session has no such change.
            Conflict: the file changed since, was undone, or its content before was not kept.
        """
        ...

    def remove_session(self, session_id: SessionId, /) -> None:
        """Remove the changes of a session."""
        ...


class WorkspaceTree(Protocol):
    """The files of a workspace for people. All methods block and follow no link."""

    def entries(self, root: str, path: str, /) -> TreePage:
        """Return the entries of a folder, folders first. `path` "" is the workspace.

        Raises:
            NotFound: there is no such folder.
        """
        ...

    def search(self, root: str, text: str, /) -> TreePage:
        """Return the files whose paths contain a text, in any letter case."""
        ...

    def read(self, root: str, path: str, /) -> bytes:
        """Return the content of a file.

        Raises:
            NotFound: there is no such file.
            Conflict: it is not shown: too large, or it holds secrets by its name.
        """
        ...
