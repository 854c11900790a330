"""The inbox: messages received from channels, stored before they are processed."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import Conflict
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import Channel
from internal.agent.store.database import Batch, Read, Statement, Write
from internal.agent.store.encoding import storable


class Steering(NamedTuple):
    """A message for a running run. `number` identifies its inbox row."""

    number: int
    text: str
    principal: str
    channel: Channel
    app: str
    chat_id: str
    message_id: str


class InboxState(NamedTuple):
    """The state of a received message.

    `run_id` is the run it was assigned to ("" for none) and `other_messages` the number of other
    messages that started this run.
    """

    number: int
    status: Literal["accepted", "assigned", "delivered", "handled"]
    steer: bool
    run_id: RunId
    other_messages: int


class _Text(msgspec.Struct):
    text: str = ""


_text = msgspec.json.Decoder(_Text)


class InboxStore:
    """Received messages.

    A message is accepted, then assigned to a run. Steering is delivered to the run's model before
    it is handled; a message that starts a run is handled when the run ends.
    """

    def accept(self, message: InboundMessage, /) -> Write[bool]:
        """Insert a message. False when its (channel, app, message_id) exists."""
        rows = yield Statement(
            "accept_message",
            (
                message.channel,
                message.app,
                message.message_id,
                message.chat_id,
                message.principal,
                message.received,
                storable(message.raw),
            ),
        )
        return bool(rows)

    def list_accepted(
        self, channel: Channel, app: str, limit: int, /
    ) -> Read[list[InboundMessage]]:
        """Return accepted messages in order of arrival."""
        rows = yield Statement("accepted_messages", (channel, app, limit))
        return [InboundMessage(*row) for row in rows]

    def dismiss(self, channel: Channel, app: str, message_id: str, /) -> Write[bool]:
        """Mark an accepted message as handled without a run. False when it is not accepted."""
        rows = yield Statement("dismiss_message", (channel, app, message_id))
        return bool(rows)

    def assign(
        self, message: InboundMessage, session_id: SessionId, run_id: RunId, *, steer: bool
    ) -> Write[None]:
        """Assign a new or accepted message to a run.

        The text for the model is the member `text` of `message.raw`. An accepted row keeps the raw
        message that it was inserted with.

        Raises:
            Conflict: the message was assigned before.
        """
        raw = storable(message.raw)
        rows = yield Statement(
            "assign_message",
            (
                message.channel,
                message.app,
                message.message_id,
                message.chat_id,
                message.principal,
                message.received,
                storable(_text.decode(raw).text),
                raw,
                session_id,
                run_id,
                int(steer),
            ),
        )
        if not rows:
            raise Conflict(f"The message {message.message_id} was processed before.")

    def list_undelivered(self, run_id: RunId, /) -> Read[list[Steering]]:
        """Return the steering of a run that was not delivered yet, in order of arrival."""
        rows = yield Statement("undelivered_messages", (run_id,))
        return [Steering(*row) for row in rows]

    def mark_delivered(self, numbers: Sequence[int], /) -> Write[None]:
        """Mark steering as delivered to its run."""
        yield Batch("mark_message_delivered", [(number,) for number in numbers])

    def mark_handled(self, run_id: RunId, /) -> Write[None]:
        """Mark the messages that started a run, and its delivered steering, as handled."""
        yield Statement("mark_messages_handled", (run_id,))

    def reassign(self, numbers: Sequence[int], run_id: RunId, /) -> Write[None]:
        """Make undelivered steering the start of another run."""
        yield Batch("reassign_message", [(number, run_id) for number in numbers])

    def get_state(self, channel: Channel, app: str, message_id: str, /) -> Read[InboxState | None]:
        """Return the state of a message."""
        rows = yield Statement("message_state", (channel, app, message_id))
        if not rows:
            return None
        number, status, steer, run_id, other_messages = rows[0]
        return InboxState(number, status, bool(steer), RunId(run_id or ""), other_messages)

    def withdraw(self, number: int, /) -> Write[None]:
        """Mark steering that was not delivered as handled."""
        yield Statement("withdraw_message", (number,))

    def withdraw_all(self, run_id: RunId, /) -> Write[None]:
        """Mark all undelivered steering of a run as handled."""
        yield Statement("withdraw_messages_of_run", (run_id,))
