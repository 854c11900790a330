"""The outbox: messages promised to chats, sent by the channel after the transaction."""

from internal.agent.domain.chats import DeadLetter, OutgoingMessage, PendingMessage
from internal.agent.domain.tasks import Channel
from internal.agent.store.database import Read, Row, Statement, Write
from internal.agent.store.encoding import storable


class OutboxStore:
    """Messages to send. A message is pending until it is settled: sent, dead or unconfirmed."""

    def add(self, outgoing: OutgoingMessage, now: str, /) -> Write[bool]:
        """Insert a message. False when its key exists."""
        rows = yield Statement(
            "insert_outgoing_message",
            (
                outgoing.key,
                outgoing.channel,
                outgoing.app,
                outgoing.chat_id,
                outgoing.reply_to,
                outgoing.run_id,
                outgoing.stop_reason,
                now,
                storable(outgoing.error),
                storable(outgoing.body),
                outgoing.question_id,
            ),
        )
        return bool(rows)

    def list_due(
        self, channel: Channel, app: str, *, now: str, limit: int
    ) -> Read[list[PendingMessage]]:
        """Return the oldest pending message of each chat whose next attempt is due."""
        rows = yield Statement("due_messages", (channel, app, now, limit))
        return [PendingMessage(row[0], _outgoing(row), row[11], row[12]) for row in rows]

    def begin_attempt(self, number: int, now: str, /) -> Write[int | None]:
        """Count an attempt before it is made. Return the count, None when already settled."""
        rows = yield Statement("begin_attempt", (number, now))
        return rows[0][0] if rows else None

    def postpone(self, number: int, next_attempt: str, failure: str, /) -> Write[None]:
        """Store why an attempt failed and when the next one is due."""
        yield Statement("postpone_message", (number, next_attempt, storable(failure)))

    def mark_sent(self, number: int, remote_id: str, now: str, /) -> Write[bool]:
        """Settle a message as sent. `remote_id` is its id in the channel."""
        rows = yield Statement("settle_message", (number, "sent", remote_id, "", now))
        return bool(rows)

    def give_up(self, number: int, failure: str, now: str, /, *, unconfirmed: bool) -> Write[bool]:
        """Settle a message as not sent, or as `unconfirmed` when it may have been sent."""
        status = "unconfirmed" if unconfirmed else "dead"
        rows = yield Statement("settle_message", (number, status, "", storable(failure), now))
        return bool(rows)

    def get_remote_id(self, key: str, /) -> Read[str]:
        """Return the channel's id of a sent message, "" for any other."""
        rows = yield Statement("remote_id", (key,))
        return str(rows[0][0]) if rows else ""

    def find_question(self, remote_id: str, /) -> Read[str]:
        """Return the id of the question that a sent message shows, "" when it shows none."""
        rows = yield Statement("question_of_message", (remote_id,))
        return str(rows[0][0]) if rows else ""

    def list_dead_letters(self, limit: int, /) -> Read[list[DeadLetter]]:
        """Return the messages that were given up, newest first."""
        rows = yield Statement("dead_letters", (limit,))
        return [
            DeadLetter(row[0], _outgoing(row), row[11] == "unconfirmed", row[12], row[13])
            for row in rows
        ]


def _outgoing(row: Row) -> OutgoingMessage:
    _, key, channel, app, chat_id, reply_to, run_id, stop_reason, error, body, question = row[:11]
    return OutgoingMessage(
        key, channel, app, chat_id, reply_to, body, run_id, stop_reason, error, question
    )
