"""A queued message is parsed once, by whoever needs it first."""

import msgspec
import pytest

from internal.agent.domain.chats import AcceptedMessage, InboundMessage
from internal.channels.chat.queued_message import QueuedMessage
from internal.channels.chat.transport import ChatEvent, RecalledMessage, StoredEvent
from tests.support.echo_app import T0
from tests.support.echo_channel import EchoService, EchoTransport


class CountingTransport(EchoTransport):
    """Counts the events that are parsed; the first one cannot be."""

    def __init__(self) -> None:
        super().__init__(EchoService())
        self.parsed = 0

    async def parse(self, stored: StoredEvent) -> ChatEvent | None:
        self.parsed += 1
        if self.parsed == 1:
            raise OSError("not yet")
        return await super().parse(stored)


def queued(raw: str) -> QueuedMessage:
    row = InboundMessage("echo", "test", "m1", "direct", "echo:test:mei", raw, T0)
    return QueuedMessage(AcceptedMessage(row))


@pytest.mark.parametrize(
    ("raw", "event"),
    [(msgspec.json.encode({"recalled": "m0"}).decode(), RecalledMessage("m0")), ("{", None)],
)
async def test_an_event_is_parsed_once_and_again_after_a_failure(
    raw: str, event: ChatEvent | None
) -> None:
    message, transport = queued(raw), CountingTransport()
    with pytest.raises(OSError, match="not yet"):
        await message.parse(transport)
    assert message.event is None
    for _ in range(3):
        assert await message.parse(transport) == event
    assert (message.event, transport.parsed) == (event, 2)
