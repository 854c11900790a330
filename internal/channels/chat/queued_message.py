"""A stored message in the queue of its chat, with its parsed event."""

from internal.agent.domain.chats import AcceptedMessage
from internal.channels.chat.transport import ChatEvent, ChatTransport, StoredEvent


class QueuedMessage:
    """An accepted message. Its event is decoded and parsed once, at the first use.

    `is_begun`: its first attempt was counted when it was accepted, and is not made yet.
    """

    def __init__(
        self, accepted: AcceptedMessage, decoded: object = None, *, is_begun: bool = False
    ) -> None:
        self.accepted, self.is_begun = accepted, is_begun
        self.row = accepted.message
        self.stored = StoredEvent(accepted.message.raw, decoded)
        self.event: ChatEvent | None = None
        """The parsed event; None if it is not parsed yet, or cannot be read."""
        self._is_parsed = False

    async def parse(self, transport: ChatTransport) -> ChatEvent | None:
        """Return the parsed event, or None if it cannot be read."""
        if not self._is_parsed:
            self.event = await transport.parse(self.stored)
            self._is_parsed = True
        return self.event
