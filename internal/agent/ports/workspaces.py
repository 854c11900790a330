"""Copies of the workspaces of sessions, which travel between hosts as archives."""

from typing import NamedTuple, Protocol

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
