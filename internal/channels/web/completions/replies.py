"""Replies to requests of other APIs, while they are written."""

from collections.abc import AsyncGenerator
from typing import Protocol

import msgspec

from internal.agent.domain.tasks import Status
from internal.agent.domain.usage import Usage

PING = b": still running\n\n"
"""Comment that a stream sends when there was no text for a while."""


class ReplyEnd(msgspec.Struct, frozen=True):
    """The end of a reply.

    `rest` is the part of the answer that was not yielded. `status` is that of the run.
    """

    answer: str
    rest: str
    usage: Usage
    is_cut: bool
    status: Status = "completed"


class CompletionReply(Protocol):
    """A reply that is being written, of a run or of the plain model.

    `id` is unique, and that of the run if there is one. Either the whole reply is taken, or its
    pieces and then its end.
    """

    id: str

    async def whole(self) -> ReplyEnd:
        """Wait for the end and return it.

        Raises:
            HttpError: the run or the model failed.
            ClientDisconnected: the client has left before.
        """
        ...

    def pieces(self) -> AsyncGenerator[str]:
        """Yield new text, and "" when there was none for a while.

        Raises:
            HttpError: as of `whole`.
        """
        ...

    async def end(self) -> ReplyEnd:
        """Return the end.

        Raises:
            HttpError: as of `whole`, or the gateway stops.
        """
        ...

    async def leave(self) -> None:
        """Record that the client has left; no effect after the end."""
        ...
