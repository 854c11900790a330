"""Storage of attachments and of the workspaces of sessions."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from internal.agent.domain.ids import SessionId
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

    def removal(self) -> AbstractAsyncContextManager[Callable[[str], None]]:
        """Hold off every `put`, of all processes, while a block runs.

        The block gets a function that removes the bytes with a hash, if there are any; it raises
        StoreUnavailable when they cannot be removed.
        """
        ...


class SessionWorkspaces(Protocol):
    """The folders that Larkspur created for sessions: workspaces, and home folders of commands."""

    async def remove(self, session_id: SessionId, /) -> None:
        """Remove the folders of a session and everything in them, if there are any.

        Raises:
            StoreUnavailable: a part of it cannot be removed.
        """
        ...
