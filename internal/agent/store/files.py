"""Which attachments are used, and the files that are to be removed."""

from collections.abc import Iterable
from typing import Literal

from internal.agent.domain.errors import FileTooLarge
from internal.agent.domain.ids import SessionId
from internal.agent.domain.text import format_size
from internal.agent.store.database import Read, Statement, Write

FileKind = Literal["attachment", "workspace"]
MAX_SESSION_BYTES = 2 * 1024 * 1024 * 1024
_MAX_REMOVALS = 1000


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
            raise FileTooLarge(f"The files of this session would exceed {limit}.")

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
                f"Your uploads that no message uses yet would exceed {limit}. Send or wait first."
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

    def end_upload(self, sha256: str, principal: str, /) -> Write[None]:
        """Drop the upload of an attachment: a task of the principal uses it."""
        yield Statement("delete_attachment_use", (sha256, principal))

    def release_session(self, session_id: SessionId, /) -> Write[None]:
        """Store the removal of a deleted session's workspace and of what only it used."""
        rows = yield Statement("delete_attachment_uses_of_session", (session_id,))
        for (sha256,) in rows:
            yield from self._remove_unused(sha256)
        yield Statement("insert_file_removal", ("workspace", session_id))

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
        """Return those that neither a session nor an upload that lasts beyond `now` uses."""
        unused = set()
        for sha256 in hashes:
            rows = yield Statement("attachment_use_after", (sha256, now))
            if not rows:
                unused.add(sha256)
        return unused

    def list_removals(self, kind: FileKind, /) -> Read[list[str]]:
        """Return the hashes or session ids of files to remove, up to 1000."""
        rows = yield Statement("file_removals", (kind, _MAX_REMOVALS))
        return [name for (name,) in rows]

    def cancel_removal_of_used(self, sha256: str, /) -> Write[bool]:
        """Drop the removal of an attachment that is used again. Return whether it is."""
        used = yield from self._is_used(sha256)
        if used:
            yield from self.end_removal("attachment", sha256)
        return used

    def end_removal(self, kind: FileKind, name: str, /) -> Write[None]:
        """Drop a removal that is finished."""
        yield Statement("delete_file_removal", (kind, name))

    def _remove_unused(self, sha256: str) -> Write[None]:
        if not (yield from self._is_used(sha256)):
            yield Statement("insert_file_removal", ("attachment", sha256))

    def _is_used(self, sha256: str) -> Read[bool]:
        rows = yield Statement("attachment_use", (sha256,))
        return bool(rows)
