"""The outbox in a table."""

from internal.agent.domain.chats import DeadLetter, OutgoingMessage, PendingMessage
from internal.agent.domain.tasks import Channel
from internal.agent.store.database import Read, Row, Statement, Write
from internal.agent.store.encoding import plain


class OutboxStore:
    """Fills `Outbox`. A row is pending until it is settled: sent, dead or doubtful."""

    def add(self, outgoing: OutgoingMessage, now: str, /) -> Write[bool]:
        """Promise a message; False when its key is known already."""
        rows = yield Statement(
            "insert_outgoing",
            (
                outgoing.key,
                outgoing.channel,
                outgoing.app,
                outgoing.chat_id,
                outgoing.reply_to,
                outgoing.run_id,
                outgoing.stop_reason,
                now,
                plain(outgoing.error),
                plain(outgoing.body),
                outgoing.question_id,
            ),
        )
        return bool(rows)

    def list_due(
        self, channel: Channel, app: str, now: str, limit: int, /
    ) -> Read[list[PendingMessage]]:
        """Return the oldest unsettled message of each chat, of those that may be tried now."""
        rows = yield Statement("due_outgoing", (channel, app, now, limit))
        return [PendingMessage(row[0], _outgoing(row), row[11], row[12]) for row in rows]

    def begin_attempt(self, number: int, now: str, /) -> Write[int | None]:
        """Count an attempt before it is made; return how many there were, None when settled."""
        rows = yield Statement("try_outgoing", (number, now))
        return rows[0][0] if rows else None

    def postpone(self, number: int, next_try: str, fault: str, /) -> Write[None]:
        """Note why an attempt failed and when the next one may be made."""
        yield Statement("postpone_outgoing", (number, next_try, plain(fault)))

    def mark_sent(self, number: int, remote_id: str, now: str, /) -> Write[bool]:
        """Settle a message that was sent; `remote_id` is the channel's name for it."""
        rows = yield Statement("settle_outgoing", (number, "sent", remote_id, "", now))
        return bool(rows)

    def give_up(self, number: int, fault: str, now: str, /, *, doubtful: bool) -> Write[bool]:
        """Give a message up; `doubtful` when it may have been sent."""
        status = "doubtful" if doubtful else "dead"
        rows = yield Statement("settle_outgoing", (number, status, "", plain(fault), now))
        return bool(rows)

    def get_remote_id(self, key: str, /) -> Read[str]:
        """Return the channel's name for a message that was sent, "" for any other."""
        rows = yield Statement("remote_id", (key,))
        return str(rows[0][0]) if rows else ""

    def find_question(self, remote_id: str, /) -> Read[str]:
        """Return the id of the question that a sent message is, "" for any other message."""
        rows = yield Statement("question_asked_as", (remote_id,))
        return str(rows[0][0]) if rows else ""

    def list_dead_letters(self, limit: int, /) -> Read[list[DeadLetter]]:
        """Return what was given up, newest first."""
        rows = yield Statement("dead_letters", (limit,))
        return [
            DeadLetter(row[0], _outgoing(row), row[11] == "doubtful", row[12], row[13])
            for row in rows
        ]


def _outgoing(row: Row) -> OutgoingMessage:
    _, key, channel, app, chat_id, reply_to, run_id, stop_reason, error, body, question = row[:11]
    return OutgoingMessage(
        key, channel, app, chat_id, reply_to, body, run_id, stop_reason, error, question
    )
