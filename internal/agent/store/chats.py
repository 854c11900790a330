"""Chat channels: settings of chats, received and outgoing messages, and displays of runs."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.chats import (
    AcceptedMessage,
    ChatSettings,
    InboundMessage,
    MessageMark,
    OutboxBacklog,
    OutgoingMessage,
    OutgoingState,
    PendingMessage,
    RunDisplay,
    UnprocessedMessage,
    UnsentMessage,
)
from internal.agent.domain.delegation.reports import TASK_ENDS_CHANNEL, TASKS_CHANNEL
from internal.agent.domain.errors import Conflict
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.permissions.network import NetworkSetting
from internal.agent.domain.tasks import Attachment, Channel
from internal.agent.store.database import Batch, Read, Row, Statement, Write
from internal.agent.store.encoding import storable, to_json
from internal.agent.store.runs import LeaderFence

_network: msgspec.json.Decoder[NetworkSetting | None] = msgspec.json.Decoder(NetworkSetting | None)


class ChatStore:
    """Chat settings."""

    def get_settings(self, chat: str, /) -> Read[ChatSettings]:
        """Return the settings of a chat, empty ones when none are stored."""
        rows = yield Statement("chat_settings", (chat,))
        if not rows:
            return ChatSettings()
        review, model, network, *texts = rows[0]
        return ChatSettings(review or None, model, _network.decode(network), *texts)

    def save_settings(self, chat: str, settings: ChatSettings, /) -> Write[None]:
        """Insert or replace the settings of a chat."""
        network = to_json(settings.network)
        texts = (storable(settings.profile), storable(settings.instructions))
        values = (chat, settings.plan_review or "", storable(settings.model), network, *texts)
        yield Statement("upsert_chat_settings", values)


class ContactStore:
    """Facts about chats apart from their messages: direct chats, greetings, turns of bots."""

    def add(self, channel: Channel, app: str, chat_id: str, /, person: str = "") -> Write[None]:
        """Insert a chat. `person` is the principal of a direct one, "" for a group."""
        yield Statement("add_chat_contact", (channel, app, chat_id, person))

    def greet(
        self, channel: Channel, app: str, chat_id: str, /, *, person: str, now: str
    ) -> Write[bool]:
        """Insert a chat as greeted. False if it was greeted before."""
        return bool((yield Statement("greet_chat", (channel, app, chat_id, person, now))))

    def find_direct(self, channel: Channel, app: str, person: str, /) -> Read[str]:
        """Return the id of the direct chat of a person, "" if it is unknown."""
        rows = yield Statement("direct_chat_of", (channel, app, person))
        return str(rows[0][0]) if rows else ""

    def count_bot_turn(self, channel: Channel, app: str, chat_id: str, /) -> Write[int]:
        """Count a message of a bot. Return how many came since the last one of a person."""
        rows = yield Statement("count_bot_turn", (channel, app, chat_id))
        return int(rows[0][0])

    def end_bot_turns(self, channel: Channel, app: str, chat_id: str, /) -> Write[None]:
        """Record a message of a person: the count of bot messages restarts from 0."""
        yield Statement("end_bot_turns", (channel, app, chat_id))


class Steering(NamedTuple):
    """A message for a running run. `number` identifies its inbox row.

    `prompt` is its text for the model, "" for `text` itself. `attachments` may still be with the
    chat service.
    """

    number: int
    text: str
    principal: str
    channel: Channel
    app: str
    chat_id: str
    message_id: str
    prompt: str = ""
    attachments: tuple[Attachment, ...] = ()

    @property
    def model_text(self) -> str:
        """The text for the model."""
        return self.prompt or self.text


MessageStatus = Literal[
    "accepted",
    "assigned",
    "delivering",
    "delivered",
    "handled",
    "failed",
    "withdrawn",
    "returned",
]
"""Steering that its run reads now is `delivering`: it is not edited or taken back any more. A
message is `withdrawn` by its writer, or `returned` to them if its run ended before it read it.
"""


class InboxState(NamedTuple):
    """The state of a received message.

    `run_id` is the run it was assigned to ("" without a run). `other_messages` is the number of
    other messages that started this run; for a message that steers it, of the ones gathered with
    it.
    """

    number: int
    status: MessageStatus
    steer: bool
    run_id: RunId
    other_messages: int


class StoredMessageState(NamedTuple):
    """A message of a session that was assigned to a run, with its current state."""

    number: int
    status: MessageStatus
    steer: bool
    run_id: RunId
    task_id: TaskId
    text: str
    principal: str
    channel: Channel
    received: str
    chat_id: str
    message_id: str
    attachments: tuple[Attachment, ...]


class SessionMessage(NamedTuple):
    """A message of a chat as its channel received it; `sent` as in `InboundMessage`."""

    message_id: str
    raw: str
    sent: str


class SentMessage(NamedTuple):
    """A sent message with the question that it asks and the session of its run; "" if absent.

    The answer of a run has a session but no question.
    """

    question_id: str
    session_id: str


_attachments = msgspec.json.Decoder(tuple[Attachment, ...])


class _Content(msgspec.Struct):
    text: str = ""
    prompt: str = ""
    attachments: msgspec.Raw = msgspec.Raw(b"[]")


_content = msgspec.json.Decoder(_Content)


def _waiting(row: Row) -> StoredMessageState:
    state = StoredMessageState(*row)
    attachments = _attachments.decode(str(state.attachments))
    return state._replace(steer=bool(state.steer), attachments=attachments)


class InboxStore:
    """Received messages.

    A message is accepted, then assigned to a run. Steering is delivered to the run's model before
    it is handled; a message that starts a run is handled when the run ends. A message that cannot
    be processed is failed until a person retries or dismisses it.
    """

    def accept(self, message: InboundMessage, /) -> Write[bool]:
        """Insert a message. False when its (channel, app, message_id) exists."""
        rows = yield Statement(
            "accept_message",
            _accepted_values(message),
        )
        return bool(rows)

    def accept_edited(self, message: InboundMessage, /) -> Write[bool]:
        """Insert a message in its edited form, or accept it again with this content.

        False when it was assigned to a run, or set aside.
        """
        rows = yield Statement(
            "accept_edited_message",
            _accepted_values(message),
        )
        return bool(rows)

    def list_accepted(
        self, channel: Channel, app: str, limit: int, /
    ) -> Read[list[AcceptedMessage]]:
        """Return accepted messages in order of arrival."""
        rows = yield Statement("accepted_messages", (channel, app, limit))
        return [AcceptedMessage(InboundMessage(*row[:8]), *row[8:]) for row in rows]

    def list_accepted_in(
        self, channel: Channel, app: str, chat_id: str, limit: int, /
    ) -> Read[list[AcceptedMessage]]:
        """Return the accepted messages of a chat in order of arrival."""
        rows = yield Statement("accepted_messages_of_chat", (channel, app, chat_id, limit))
        return [AcceptedMessage(InboundMessage(*row[:8]), *row[8:]) for row in rows]

    def list_raw(self, channel: Channel, app: str, prefix: str, /) -> Read[list[str]]:
        """Return the messages, as received, whose ids begin with an ASCII prefix."""
        end = f"{prefix[:-1]}{chr(ord(prefix[-1]) + 1)}"
        rows = yield Statement("raw_messages_between", (channel, app, prefix, end))
        return [str(row[0]) for row in rows]

    def begin_processing(
        self,
        message: InboundMessage,
        attempts: int,
        next_attempt: str,
        leader: LeaderFence | None = None,
        /,
    ) -> Write[bool]:
        """Store the attempts with the one that is about to be made. False if it is not accepted.

        It is also False while an earlier message of the chat is accepted and, with `leader`, when
        another process leads. The outcome is unknown until `postpone_processing` or a settlement
        says otherwise.
        """
        values = (*_key(message), attempts, next_attempt, *(leader or ("", 0)))
        return bool((yield Statement("begin_processing", values)))

    def postpone_processing(
        self, message: InboundMessage, attempts: int, *, next_attempt: str, failure: str
    ) -> Write[None]:
        """Store the attempts so far, why the last one failed and when the next one is due."""
        values = (*_key(message), attempts, next_attempt, storable(failure))
        yield Statement("postpone_processing", values)

    def set_aside(
        self, message: InboundMessage, *, failure: str, text: str, now: str
    ) -> Write[bool]:
        """Mark an accepted message as failed. `text` is the person's text, "" if unknown.

        Returns False when it is not accepted.
        """
        values = (*_key(message), storable(failure), storable(text), now)
        return bool((yield Statement("set_message_aside", values)))

    def list_unprocessed(self, limit: int, /) -> Read[list[UnprocessedMessage]]:
        """Return the messages that were set aside, newest first."""
        rows = yield Statement("unprocessed_messages", (limit,))
        return [UnprocessedMessage(row[0], InboundMessage(*row[1:9]), *row[9:]) for row in rows]

    def retry(self, number: int, /) -> Write[str]:
        """Accept a failed message as if new. Return its id in the channel, "" if not failed."""
        rows = yield Statement("retry_processing", (number,))
        return str(rows[0][0]) if rows else ""

    def dismiss_unprocessed(self, number: int, /) -> Write[str]:
        """Mark a failed message as handled. Return its id in the channel, "" if not failed."""
        rows = yield Statement("dismiss_unprocessed_message", (number,))
        return str(rows[0][0]) if rows else ""

    def dismiss(self, channel: Channel, app: str, message_id: str, /) -> Write[bool]:
        """Mark an accepted message as handled without a run. False when it is not accepted."""
        rows = yield Statement("dismiss_message", (channel, app, message_id))
        return bool(rows)

    def assign(
        self, message: InboundMessage, session_id: SessionId, run_id: RunId, *, steer: bool
    ) -> Write[int]:
        """Assign a new or accepted message to a run, and return its number.

        Its content are the members `text`, `prompt` and `attachments` of `message.raw`. An accepted
        row keeps the raw message that it was inserted with; it gets the principal of `message`.

        Raises:
            Conflict: the message was assigned before.
        """
        raw = storable(message.raw)
        content = _content.decode(raw)
        rows = yield Statement(
            "assign_message",
            (
                message.channel,
                message.app,
                message.message_id,
                message.chat_id,
                message.principal,
                message.received,
                storable(content.text),
                raw,
                session_id,
                run_id,
                int(steer),
                storable(content.prompt),
                bytes(content.attachments).decode(),
            ),
        )
        if not rows:
            raise Conflict(
                f"The message {message.message_id} was processed before.",
                reason_code="message_processed",
                message=message.message_id,
            )
        return int(rows[0][0])

    def list_undelivered(self, run_id: RunId, /) -> Read[list[Steering]]:
        """Return the steering of a run that was not delivered yet, in order of arrival."""
        rows = yield Statement("undelivered_messages", (run_id,))
        return [
            Steering(*row)._replace(attachments=_attachments.decode(str(row[-1]))) for row in rows
        ]

    def begin_delivery(self, run_id: RunId, /) -> Write[list[Steering]]:
        """Return the undelivered steering of a run, which nobody edits or takes back any more."""
        yield Statement("begin_delivery", (run_id,))
        return (yield from self.list_undelivered(run_id))

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

    def get_raw(self, channel: Channel, app: str, message_id: str, /) -> Read[str]:
        """Return a message as its channel received it, "" if it is unknown."""
        rows = yield Statement("raw_message", (channel, app, message_id))
        return str(rows[0][0]) if rows else ""

    def get_text(self, number: int, /) -> Read[str]:
        """Return the text of an assigned message."""
        rows = yield Statement("text_of_message", (number,))
        return str(rows[0][0]) if rows else ""

    def replace_content(self, number: int, message: InboundMessage, /) -> Write[None]:
        """Replace the text, the prompt and the attachments of a message; see `assign`."""
        yield from self.replace_text(number, message.raw)

    def get_times(self, channel: Channel, app: str, message_id: str, /) -> Read[tuple[str, str]]:
        """Return when a message was sent, by its chat service, and received; "" if unknown."""
        rows = yield Statement("times_of_message", (channel, app, message_id))
        return (rows[0][0], rows[0][1]) if rows else ("", "")

    def get_session(self, channel: Channel, app: str, message_id: str, /) -> Read[str]:
        """Return the session that a message belongs to, "" if it has none."""
        rows = yield Statement("session_of_message", (channel, app, message_id))
        return str(rows[0][0]) if rows else ""

    def list_active_chats(self, channel: Channel, app: str, limit: int, /) -> Read[list[str]]:
        """Return the ids of the chats that have sessions, the most recently active one first."""
        rows = yield Statement("active_chats", (channel, app, limit))
        return [str(row[0]) for row in rows]

    def list_newest_of_chat(
        self, channel: Channel, app: str, chat_id: str, limit: int, /
    ) -> Read[list[SessionMessage]]:
        """Return the newest messages of a chat that are part of a session, newest first."""
        rows = yield Statement("newest_messages_of_chat", (channel, app, chat_id, limit))
        return [SessionMessage(*row) for row in rows]

    def get_history_mark(self, channel: Channel, app: str, /) -> Read[str]:
        """Return until when (RFC 3339) no message of an account is missing, "" if unknown."""
        rows = yield Statement("history_mark", (channel, app))
        return str(rows[0][0]) if rows else ""

    def save_history_mark(self, channel: Channel, app: str, checked: str, /) -> Write[None]:
        """Store until when no message of an account is missing; it never goes back."""
        yield Statement("save_history_mark", (channel, app, checked))

    def replace_text(self, number: int, content: str, /) -> Write[None]:
        """Replace the text, the prompt and the attachments of a message; see `assign`."""
        new = _content.decode(storable(content))
        values = (number, storable(new.text), storable(new.prompt), bytes(new.attachments).decode())
        yield Statement("replace_message_content", values)

    def withdraw(self, number: int, /) -> Write[None]:
        """Mark steering that was not delivered as withdrawn."""
        yield Statement("withdraw_message", (number,))

    def take_back(self, number: int, /) -> Write[None]:
        """Mark a message as withdrawn: no model has read it."""
        yield Statement("take_message_back", (number,))

    def give_back(self, number: int, /) -> Write[None]:
        """Mark steering that was not delivered as returned to its writer."""
        yield Statement("give_message_back", (number,))

    def list_waiting(self, session_id: SessionId, /) -> Read[list[StoredMessageState]]:
        """Return the messages of a session that no model has read, in order of arrival.

        They steer a run, start one that has not begun, or were returned.
        """
        rows = yield Statement("waiting_messages", (session_id,))
        states = map(_waiting, rows)
        return [each for each in states if each.channel not in {TASKS_CHANNEL, TASK_ENDS_CHANNEL}]

    def get_waiting(self, session_id: SessionId, number: int, /) -> Read[StoredMessageState | None]:
        """Return a message of a session that was assigned to a run, in any state."""
        rows = yield Statement("waiting_message", (session_id, number))
        return _waiting(rows[0]) if rows else None

    def note_reaction(
        self, channel: Channel, app: str, message_id: str, /, *, reaction: str, run_id: str
    ) -> Write[None]:
        """Store the reaction of the bot on a message, by its id in the channel.

        `run_id` is the run that an answer or a command is about, "" without one.
        """
        yield Statement("note_reaction", (channel, app, message_id, reaction, run_id))

    def list_settled_reactions(
        self, channel: Channel, app: str, limit: int, /
    ) -> Read[list[MessageMark]]:
        """Return the reactions on messages whose run has ended."""
        rows = yield Statement("settled_reactions", (channel, app, limit))
        return [MessageMark(row[0], row[1], row[2], bool(row[3])) for row in rows]

    def clear_reaction(self, number: int, /) -> Write[None]:
        """Store that a message has its last reaction."""
        yield Statement("clear_reaction", (number,))


class OutboxStore:
    """Messages to send.

    A message is pending until it is settled: sent, dead, unconfirmed, or dropped with its chat.
    """

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
                to_json(outgoing.attachments),
            ),
        )
        return bool(rows)

    def list_due(
        self,
        channel: Channel,
        app: str,
        *,
        now: str,
        limit: int,
        failing_since: str = "",
        latest: str = "9999",
    ) -> Read[list[PendingMessage]]:
        """Return the oldest pending message of each chat whose next attempt is due.

        An attempt after `latest` is due as well: the clock was set back since it was planned.

        A message that fails by itself, and was first tried before `failing_since`, only delays
        messages of its run and replies to the same message.
        """
        rows = yield Statement("due_messages", (channel, app, now, limit, failing_since, latest))
        return [PendingMessage(row[0], _outgoing(row), *row[12:]) for row in rows]

    def begin_attempt(
        self, number: int, now: str, leader: LeaderFence | None = None, /
    ) -> Write[int | None]:
        """Count an attempt before it is made. Return the count, None when already settled.

        Its outcome is unknown until `postpone` or a settlement says otherwise. With `leader` the
        result is also None when another process leads.
        """
        rows = yield Statement("begin_attempt", (number, now, *(leader or ("", 0))))
        return rows[0][0] if rows else None

    def postpone(
        self,
        number: int,
        next_attempt: str,
        failure: str,
        /,
        *,
        unconfirmed: bool,
        isolated: bool = False,
    ) -> Write[None]:
        """Store why an attempt failed and when the next one is due.

        `unconfirmed`: the message may have been sent by an attempt so far. `isolated`: other calls
        of the account succeed.
        """
        values = (number, next_attempt, storable(failure), int(isolated), int(unconfirmed))
        yield Statement("postpone_message", values)

    def mark_sent(self, number: int, remote_id: str, now: str, /, *, sent: str = "") -> Write[bool]:
        """Settle a message as sent. `remote_id` is its id in the channel.

        `sent` is the time of the message by the clock of the chat service, "" if unknown.
        """
        rows = yield Statement("settle_message", (number, "sent", remote_id, "", now, sent))
        return bool(rows)

    def list_files(
        self, reply: OutgoingMessage, /
    ) -> Read[list[tuple[str, tuple[Attachment, ...]]]]:
        """Return the keys and files of the messages that wait to be sent after a reply."""
        values = (reply.channel, reply.app, reply.chat_id, reply.run_id)
        rows = yield Statement("pending_files", values)
        return [(str(row[0]), _attachments.decode(row[1])) for row in rows]

    def mark_contained(self, keys: Sequence[str], remote_id: str, now: str, /) -> Write[None]:
        """Settle messages that wait as sent, since another sent message has their content."""
        yield Batch("settle_contained", [(key, remote_id, now) for key in keys])

    def has_pending_beside(self, number: int, /) -> Read[bool]:
        """Return True if messages of the chat of a message are pending."""
        return bool((yield Statement("pending_beside", (number,))))

    def give_up(self, number: int, failure: str, now: str, /, *, unconfirmed: bool) -> Write[bool]:
        """Settle a message as not sent, or as `unconfirmed` when it may have been sent."""
        status = "unconfirmed" if unconfirmed else "dead"
        values = (number, status, "", storable(failure), now, "")
        rows = yield Statement("settle_message", values)
        return bool(rows)

    def get_state(self, key: str, /) -> Read[OutgoingState | None]:
        """Return the state of a message."""
        rows = yield Statement("outgoing_state", (key,))
        return OutgoingState(rows[0][0] == "pending", rows[0][1]) if rows else None

    def drop(self, channel: Channel, app: str, chat_id: str, *, why: str, now: str) -> Write[int]:
        """Settle the pending messages of a chat as dropped. Return their number."""
        rows = yield Statement("drop_messages", (channel, app, chat_id, storable(why), now))
        return len(rows)

    def get_visible_since(self, key: str, /) -> Read[str | None]:
        """Return since when people may have seen a message, None if they cannot have.

        It is the time of the message by the clock of the chat service. If that is unknown, it is
        the first attempt with an unknown outcome, or the first attempt to send a message that was
        given up.
        """
        rows = yield Statement("visible_since", (key,))
        return rows[0][0] if rows else None

    def get_remote_id(self, key: str, /) -> Read[str]:
        """Return the channel's id of a sent message, "" for any other."""
        rows = yield Statement("remote_id", (key,))
        return str(rows[0][0]) if rows else ""

    def list_sent_ids(self, outgoing: OutgoingMessage, since: str, /) -> Read[frozenset[str]]:
        """Return the channel's ids of the messages sent since then to the chat of a message."""
        values = (outgoing.channel, outgoing.app, outgoing.chat_id, since)
        return frozenset(row[0] for row in (yield Statement("sent_since", values)))

    def find_question(self, remote_id: str, /) -> Read[str]:
        """Return the id of the question that a sent message shows, "" when it shows none."""
        rows = yield Statement("question_of_message", (remote_id,))
        return str(rows[0][0]) if rows else ""

    def get_sent(self, channel: Channel, app: str, remote_id: str, /) -> Read[SentMessage | None]:
        """Return the details of a sent message; None if it is not in the outbox."""
        rows = yield Statement("sent_message", (channel, app, remote_id))
        return SentMessage(*rows[0]) if rows else None

    def find_answer(
        self, channel: Channel, app: str, remote_id: str, /
    ) -> Read[tuple[TaskId, RunId] | None]:
        """Return the task and the run that a sent message answers; None if it answers none."""
        rows = yield Statement("answer_of_message", (channel, app, remote_id))
        return (TaskId(rows[0][0]), RunId(rows[0][1])) if rows else None

    def get_backlog(
        self, channel: Channel, app: str, *, waiting_since: str, given_up_since: str
    ) -> Read[OutboxBacklog]:
        """Return how many messages have waited since a time, and were given up since a time."""
        rows = yield Statement("outbox_backlog", (channel, app, waiting_since, given_up_since))
        return OutboxBacklog(*rows[0])

    def list_unsent(self, limit: int, /) -> Read[list[UnsentMessage]]:
        """Return the messages that were given up, newest first."""
        rows = yield Statement("unsent_messages", (limit,))
        return [
            UnsentMessage(row[0], _outgoing(row), row[12] == "unconfirmed", *row[13:])
            for row in rows
        ]

    def is_unconfirmed(self, number: int, /) -> Read[bool | None]:
        """Return True if a message that was given up may have been sent; None if not given up."""
        rows = yield Statement("unsent_message_status", (number,))
        return bool(rows[0][0] == "unconfirmed") if rows else None

    def resend(self, number: int, now: str, /, *, unconfirmed: bool) -> Write[str]:
        """Make a message that was given up pending again, as if new. Return its key."""
        status = "unconfirmed" if unconfirmed else "dead"
        rows = yield Statement("resend_message", (number, now, status))
        return str(rows[0][0]) if rows else ""

    def dismiss_unsent(self, number: int, /) -> Write[str]:
        """Settle a message that was given up as dropped. Return its key, "" if there is none."""
        rows = yield Statement("dismiss_unsent_message", (number,))
        return str(rows[0][0]) if rows else ""

    def count_dead_letters(self, crashes: int, /) -> Read[int]:
        """Return how many messages and runs were given up; runs after that many crashes."""
        rows = yield Statement("dead_letter_count", (crashes,))
        return sum(rows[0])


def _accepted_values(message: InboundMessage) -> tuple[str, ...]:
    return (
        *_key(message),
        message.chat_id,
        message.principal,
        message.received,
        storable(message.raw),
        message.sent,
    )


def _key(message: InboundMessage) -> tuple[str, str, str]:
    return message.channel, message.app, message.message_id


def _outgoing(row: Row) -> OutgoingMessage:
    key, channel, app, chat_id, reply_to, run_id, stop_reason, error, body, question, files = row[
        1:12
    ]
    return OutgoingMessage(
        key,
        channel,
        app,
        chat_id,
        reply_to,
        body,
        run_id,
        stop_reason,
        error,
        question,
        _attachments.decode(files),
    )


class RunDisplayStore:
    """Run displays. A lease makes sure that one process at a time writes to a display."""

    def claim(
        self, run_id: RunId, channel: str, owner: str, *, lease_until: str, now: str
    ) -> Write[RunDisplay | None]:
        """Take the display of a run. None when it is closed or leased by another owner."""
        rows = yield Statement("claim_run_display", (run_id, channel, owner, lease_until, now))
        return RunDisplay(run_id, *rows[0]) if rows else None

    def save(
        self, display: RunDisplay, channel: str, owner: str, *, lease_until: str
    ) -> Write[bool]:
        """Store the displayed state and extend the lease. False when another owner has it."""
        rows = yield Statement(
            "save_run_display",
            (
                display.run_id,
                channel,
                owner,
                display.last_position,
                storable(display.state),
                lease_until,
            ),
        )
        return bool(rows)

    def close(self, display: RunDisplay, channel: str, owner: str, /) -> Write[bool]:
        """Mark a display as finished. False when another owner has it."""
        values = (display.run_id, channel, owner, storable(display.state))
        rows = yield Statement("close_run_display", values)
        return bool(rows)

    def release_all(self, channel: str, /) -> Write[None]:
        """Take the unfinished displays of a channel from their owners."""
        yield Statement("release_run_displays", (channel,))

    def get(self, run_id: RunId, channel: str, /) -> Read[RunDisplay | None]:
        """Return the display of a run, whoever holds it."""
        rows = yield Statement("run_display", (run_id, channel))
        return RunDisplay(run_id, *rows[0]) if rows else None

    def list_abandoned(self, channel: str, now: str, /) -> Read[list[RunDisplay]]:
        """Return the unfinished displays whose lease has expired."""
        rows = yield Statement("abandoned_run_displays", (channel, now))
        return [RunDisplay(RunId(run_id), position, state) for run_id, position, state in rows]
