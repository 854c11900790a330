"""Storage of attachments."""

from typing import Protocol

from internal.agent.domain.tasks import Attachment


class Attachments(Protocol):
    """A content-addressed store: equal bytes have the same URI, such as `attachment:<sha256>`."""

    async def put(self, name: str, media_type: str, content: bytes, /) -> Attachment:
        """Store the bytes and return their attachment. Repeating this is free.

        Raises:
            StoreUnavailable: the folder cannot be written; nothing was stored.
        """
        ...

    async def get(self, sha256: str, /) -> bytes:
        """Return the bytes.

        Raises:
            NotFound: no file has this hash.
        """
        ...
