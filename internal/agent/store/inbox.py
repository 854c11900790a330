"""The inbox in a table."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import Conflict
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import (
    Channel,
)
from internal.agent.store.database import Batch, Read, Statement, Write
from internal.agent.store.encoding import plain


class Steering(NamedTuple):
    """A person's words for a run at work: the inbox row, and where they are from."""

    number: int
    text: str
    principal: str
    channel: Channel
    app: str
    chat_id: str
    message_id: str


class InboxState(NamedTuple):
    """What became of a received message: its run, and how many others began that run with it."""

    number: int
    status: Literal["accepted", "taken", "told", "handled"]
    steer: bool
    run_id: RunId
    other_messages: int


class _Words(msgspec.Struct):
    text: str = ""


_words = msgspec.json.Decoder(_Words)


class InboxStore:
    """Fills `Inbox`. A row is accepted, then taken (in for a run), told (to it), then handled."""

    def accept(self, message: InboundMessage, /) -> Write[bool]:
        """Store a raw message; False when (channel, app, message_id) is known already."""
        rows = yield Statement(
            "accept_message",
            (
                message.channel,
                message.app,
                message.message_id,
                message.chat_id,
                message.principal,
                message.received,
                plain(message.raw),
            ),
        )
        return bool(rows)

    def list_accepted(
        self, channel: Channel, app: str, limit: int, /
    ) -> Read[list[InboundMessage]]:
        """Return messages that were accepted and not taken in, in order of arrival."""
        rows = yield Statement("accepted_messages", (channel, app, limit))
        return [InboundMessage(*row) for row in rows]

    def dismiss(self, channel: Channel, app: str, message_id: str, /) -> Write[bool]:
        """Mark an accepted message as handled without a run; False when it was taken in."""
        rows = yield Statement("dismiss_message", (channel, app, message_id))
        return bool(rows)

    def assign(
        self, message: InboundMessage, session_id: SessionId, run_id: RunId, *, steer: bool
    ) -> Write[None]:
        """Store a message, or mark the accepted one, as taken in for a run.

        The words that a run is told are the `text` of `message.raw`; an accepted row keeps the raw
        message that it came with.

        Raises:
            Conflict: it was taken in before.
        """
        raw = plain(message.raw)
        rows = yield Statement(
            "take_message",
            (
                message.channel,
                message.app,
                message.message_id,
                message.chat_id,
                message.principal,
                message.received,
                plain(_words.decode(raw).text),
                raw,
                session_id,
                run_id,
                int(steer),
            ),
        )
        if not rows:
            raise Conflict(f"The message {message.message_id} was taken in before.")

    def list_undelivered(self, run_id: RunId, /) -> Read[list[Steering]]:
        """Return the steering that a run has not taken, in order of arrival."""
        rows = yield Statement("untold_messages", (run_id,))
        return [Steering(*row) for row in rows]

    def mark_delivered(self, numbers: Sequence[int], /) -> Write[None]:
        """Mark steering as taken by its run."""
        yield Batch("tell_message", [(number,) for number in numbers])

    def mark_handled(self, run_id: RunId, /) -> Write[None]:
        """Mark what a run was started with and what it took as done."""
        yield Statement("handle_messages", (run_id,))

    def reassign(self, numbers: Sequence[int], run_id: RunId, /) -> Write[None]:
        """Make steering that a run did not take the start of another run."""
        yield Batch("move_message", [(number, run_id) for number in numbers])

    def get_state(self, channel: Channel, app: str, message_id: str, /) -> Read[InboxState | None]:
        """Return what became of a message."""
        rows = yield Statement("place_of_message", (channel, app, message_id))
        if not rows:
            return None
        number, status, steer, run_id, other_messages = rows[0]
        return InboxState(number, status, bool(steer), RunId(run_id or ""), other_messages)

    def withdraw(self, number: int, /) -> Write[None]:
        """Take steering back that its run was not told."""
        yield Statement("unsay_message", (number,))

    def withdraw_all(self, run_id: RunId, /) -> Write[None]:
        """Take back all steering that a run was not told."""
        yield Statement("drop_messages", (run_id,))
