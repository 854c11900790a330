"""What the agent asks of the place where files are kept."""

from typing import Protocol

from internal.agent.domain.tasks import Attachment


class Attachments(Protocol):
    """A content-addressed store: the same bytes have one URI, such as `attachment:<sha256>`."""

    async def put(self, name: str, media_type: str, content: bytes, /) -> Attachment:
        """Keep the bytes and return where they are. Storing them again costs nothing.

        Raises:
            StoreUnavailable: the folder cannot be written; nothing is kept.
        """
        ...

    async def get(self, sha256: str, /) -> bytes:
        """Return the bytes.

        Raises:
            NotFound: nothing is kept under this name.
        """
        ...
