"""Uses of attachments, files to remove, and the hosts that have files."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from internal.agent.domain.errors import FileTooLarge
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.text import format_size
from internal.agent.store.database import Read, Statement, Write

FileKind = Literal["attachment", "workspace"]
StorageKind = Literal["workspaces", "attachments", "home"]
MAX_SESSION_BYTES = 2 * 1024 * 1024 * 1024
_MAX_REMOVALS = 1000
_ALWAYS = "9"  # later than every time


class FileStore:
    """The uses of attachments, and files whose removal is not finished.

    A file is written after its use is stored, and removed after its removal is stored. So every
    file is known here, whenever the process is killed.

    Attributes:
        max_session_bytes: the size of the files of a session together, and of the uploads of a
            principal that no task uses yet.
    """

    def __init__(self, max_session_bytes: int = MAX_SESSION_BYTES) -> None:
        self.max_session_bytes = max_session_bytes

    def add_use(
        self, sha256: str, session_id: SessionId, /, *, size: int = 0, quota: int | None = None
    ) -> Write[None]:
        """Keep an attachment as long as a session exists.

        Raises:
            FileTooLarge: with it the attachments of the session have more than `quota` bytes.
        """
        yield Statement("upsert_attachment_use", (sha256, session_id, "", size))
        if quota is not None and (yield from self.count_bytes(session_id)) > quota:
            limit = format_size(quota)
            raise FileTooLarge(
                f"The files of this session would exceed {limit}.",
                reason_code="session_files_too_large",
                limit=limit,
            )

    def add_upload(
        self,
        sha256: str,
        principal: str,
        expires: str,
        /,
        *,
        size: int = 0,
        quota: int | None = None,
    ) -> Write[None]:
        """Keep an attachment for a task that a principal submits before a time (RFC 3339).

        Raises:
            FileTooLarge: with it the uploads of the principal have more than `quota` bytes.
        """
        yield Statement("upsert_attachment_use", (sha256, principal, expires, size))
        if quota is not None and (yield from self.count_bytes(principal)) > quota:
            limit = format_size(quota)
            raise FileTooLarge(
                f"Your uploads that no message uses yet would exceed {limit}. Send or wait first.",
                reason_code="uploads_too_large",
                limit=limit,
            )

    def copy_uses(self, source: SessionId, target: SessionId, /) -> Write[None]:
        """Keep the attachments of a session as long as another one exists, too."""
        yield Statement("copy_attachment_uses", (source, target))

    def count_bytes(self, holder: str, /) -> Read[int]:
        """Return the size of the attachments of a session, or of the uploads of a principal."""
        ((size,),) = yield Statement("attachment_bytes", (holder,))
        return int(size)

    def has_use_of_owner(self, sha256: str, principal: str, /) -> Read[bool]:
        """Return True if a principal uploaded the attachment, or a session of theirs uses it."""
        rows = yield Statement("attachment_use_of_owner", (sha256, principal))
        return bool(rows)

    def replace_archive(self, session_id: SessionId, sha256: str, /) -> Write[None]:
        """Drop the uses of earlier archives of a workspace; `sha256` is the newest."""
        holder = archive_holder(session_id)
        rows = yield Statement("delete_other_attachment_uses", (holder, sha256))
        for (other,) in rows:
            yield from self._remove_unused(other)

    def add_archive(self, session_id: SessionId, sha256: str, size: int, /) -> Write[None]:
        """Keep an archive of the workspace of a session."""
        yield Statement("upsert_attachment_use", (sha256, archive_holder(session_id), "", size))

    def end_upload(self, sha256: str, principal: str, /) -> Write[None]:
        """Drop the upload of an attachment: a task of the principal uses it."""
        yield Statement("delete_attachment_use", (sha256, principal))

    def release_session(self, session_id: SessionId, /) -> Write[None]:
        """Store the removal of a deleted session's workspace and of files that only it used."""
        for holder in (session_id, archive_holder(session_id)):
            rows = yield Statement("delete_attachment_uses_of_session", (holder,))
            for (sha256,) in rows:
                yield from self._remove_unused(sha256)
        yield Statement("delete_workspace_archive", (session_id,))
        yield Statement("insert_file_removal", ("workspace", session_id))
        yield Statement("insert_workspace_removals", (session_id,))

    def has_expired(self, now: str, /) -> Read[bool]:
        """Return True if there are uploads that no task used in time."""
        rows = yield Statement("expired_attachment_use", (now,))
        return bool(rows)

    def release_expired(self, now: str, /) -> Write[None]:
        """Store the removal of uploads that no task used in time."""
        rows = yield Statement("delete_expired_attachment_uses", (now,))
        for (sha256,) in rows:
            yield from self._remove_unused(sha256)

    def find_unused(self, hashes: Iterable[str], now: str, /) -> Read[set[str]]:
        """Return the files that neither a session nor an upload that lasts beyond `now` uses."""
        unused = set()
        for sha256 in hashes:
            rows = yield Statement("attachment_use_after", (sha256, now))
            if not rows:
                unused.add(sha256)
        return unused

    def list_removals(
        self, kind: FileKind, /, host: str = "", *, lost_before: str = _ALWAYS
    ) -> Read[list[str]]:
        """Return the hashes or session ids of files to remove, up to 1000, on one host.

        Removals that a process has begun after the time `lost_before` are left out.
        """
        values = (_removal_kind(kind, host), _MAX_REMOVALS, lost_before)
        rows = yield Statement("file_removals", values)
        return [name for (name,) in rows]

    def begin_removal(self, sha256: str, now: str, /, *, lost_before: str) -> Write[bool]:
        """Begin to remove an attachment, unless it is used or another process removes it.

        A removal that began before the time `lost_before` is taken over. The removal of a used file
        is dropped, as long as nobody has begun it.
        """
        used = yield from self._is_used(sha256)
        rows = yield Statement("file_removal", ("attachment", sha256))
        begun = rows[0][0] if rows else ""
        if begun > lost_before:
            return False
        if used:
            yield from self.end_removal("attachment", sha256)
            return False
        yield Statement("begin_file_removal", ("attachment", sha256, now))
        return True

    def is_being_removed(self, sha256: str, lost_before: str, /) -> Read[bool]:
        """Return True while a process removes an attachment, which it began after a time."""
        rows = yield Statement("file_removal", ("attachment", sha256))
        return bool(rows) and rows[0][0] > lost_before

    def end_removal(self, kind: FileKind, name: str, /, host: str = "") -> Write[None]:
        """Drop a removal that is finished."""
        yield Statement("delete_file_removal", (_removal_kind(kind, host), name))

    def _remove_unused(self, sha256: str) -> Write[None]:
        if not (yield from self._is_used(sha256)):
            yield Statement("insert_file_removal", ("attachment", sha256))

    def _is_used(self, sha256: str) -> Read[bool]:
        rows = yield Statement("attachment_use", (sha256,))
        return bool(rows)


def archive_holder(session_id: SessionId) -> str:
    """Return the holder name for the archive of a session's workspace."""
    return f"workspace:{session_id}"


def _removal_kind(kind: FileKind, host: str) -> str:
    return f"{kind} of {host}" if host else kind


class HostRow(NamedTuple):
    """A host. `marker` is the id in the folder of its workspaces, "" if hosts share that folder.

    `seen` is when a process of it last said that it works, RFC 3339, "" for never.
    """

    name: str
    marker: str
    seen: str


class WorkspaceArchive(NamedTuple):
    """The newest archive of the workspace of a session.

    `version` is new with each; `sha256` is "" if there is none; `saved` is RFC 3339.
    """

    version: str
    sha256: str
    saved: str


class StrandedRun(NamedTuple):
    """A queued run whose session has its files on a host that does not work.

    `seen` is when it last did, RFC 3339, "" for never.
    """

    run_id: RunId
    task_id: TaskId
    session_id: SessionId
    host: str
    seen: str


class HostStore:
    """Hosts, their shared storage, and the host that has the files of each session."""

    def get(self, name: str, /) -> Read[HostRow | None]:
        """Return a host."""
        rows = yield Statement("host", (name,))
        return HostRow._make(rows[0]) if rows else None

    def get_by_marker(self, marker: str, /) -> Read[HostRow | None]:
        """Return the host whose workspaces are in the folder with a marker."""
        rows = yield Statement("host_by_marker", (marker,))
        return HostRow._make(rows[0]) if rows else None

    def list_all(self) -> Read[list[HostRow]]:
        """Return all hosts by name."""
        rows = yield Statement("hosts")
        return [HostRow._make(row) for row in rows]

    def save(self, host: HostRow, /) -> Write[None]:
        """Insert or replace a host."""
        yield Statement("upsert_host", tuple(host))

    def renew(self, name: str, now: str, /) -> Write[None]:
        """Record that a host works."""
        yield Statement("renew_host", (name, now))

    def get_storage(self, kind: StorageKind, /) -> Read[str]:
        """Return the marker of the storage that all hosts share, "" if it was never recorded."""
        rows = yield Statement("shared_storage", (kind,))
        return str(rows[0][0]) if rows else ""

    def set_storage(self, kind: StorageKind, marker: str, /) -> Write[None]:
        """Record the marker of the storage that all hosts share."""
        yield Statement("upsert_shared_storage", (kind, marker))

    def bind(self, session_id: SessionId, host: str, /) -> Write[None]:
        """Record that the files of a session are on a host, unless they are on another one.

        Called in or before the transaction that precedes their first use.
        """
        yield Statement("bind_session", (session_id, host))

    def get_of_session(self, session_id: SessionId, /) -> Read[str]:
        """Return the host that has the files of a session, "" for any."""
        rows = yield Statement("session_host", (session_id,))
        return str(rows[0][0]) if rows else ""

    def release(self, session_id: SessionId, host: str, /) -> Write[None]:
        """Let any host execute the next run of a session, unless one of its runs is running."""
        yield Statement("release_session_host", (session_id, host))

    def move(self, session_id: SessionId, host: str, version: str, /) -> Write[bool]:
        """Let another host execute the next run of a session, "" for any.

        `version` becomes the version of its archive: no host has its content. False if one of its
        runs is running.
        """
        rows = yield Statement("move_session", (session_id, host))
        if rows:
            yield Statement("renew_workspace_archive", (session_id, version))
            yield Statement("forget_told_host", (session_id,))
        return bool(rows)

    def list_stranded(self, seen_before: str, limit: int, /) -> Read[list[StrandedRun]]:
        """Return queued runs whose host was last seen before a time, without a notice so far."""
        rows = yield Statement("runs_of_missing_hosts", (seen_before, limit))
        return [StrandedRun._make(row) for row in rows]

    def set_told(self, run_id: RunId, host: str, /) -> Write[bool]:
        """Record that the person was notified of a missing host. False if no notice is needed."""
        rows = yield Statement("set_told_host", (run_id, host))
        return bool(rows)

    def get_archive(self, session_id: SessionId, /) -> Read[WorkspaceArchive | None]:
        """Return the newest archive of the workspace of a session."""
        rows = yield Statement("workspace_archive", (session_id,))
        return WorkspaceArchive._make(rows[0]) if rows else None

    def save_archive(self, session_id: SessionId, archive: WorkspaceArchive, /) -> Write[None]:
        """Replace the archive of the workspace of a session."""
        yield Statement("upsert_workspace_archive", (session_id, *archive))
