"""The inbox and the outbox as chat channels use them."""

from datetime import timedelta
from functools import partial
from typing import NamedTuple

import msgspec

from internal.agent.domain.chats import InboundMessage, OutgoingMessage, PendingMessage
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import QuestionId, RunId
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import Channel
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Read
from internal.agent.store.stores import Stores

MAX_COUNTED_DEAD_LETTERS = 100


class _Payload(msgspec.Struct):
    error_code: str = ""
    reason: str = ""


class _TerminalEvent(msgspec.Struct):
    payload: _Payload


_terminal_event = msgspec.json.Decoder(_TerminalEvent).decode


class ReplyContext(NamedTuple):
    """What a reply is about: the `instruction` of its task, and how its run failed.

    `failure` is an error code or the reason of a stop. Both are "" if unknown.
    """

    instruction: str
    failure: str


class QuestionContext(NamedTuple):
    """A question in a chat. `message_id` is the remote id of its message, "" if not sent."""

    record: QuestionRecord
    instruction: str
    message_id: str


class ChatDelivery:
    """Accepted messages that wait to be processed, and outgoing messages that wait to be sent."""

    def __init__(self, database: Database, stores: Stores, clock: Clock) -> None:
        self._database, self._stores, self._clock = database, stores, clock

    async def accept(self, message: InboundMessage) -> bool:
        """Store a message before it is acknowledged; False if it is already known."""
        return await self._database.write(partial(self._stores.inbox.accept, message))

    async def list_accepted(self, channel: Channel, app: str, limit: int) -> list[InboundMessage]:
        """Return messages that were accepted and not processed, in order of arrival."""
        work = partial(self._stores.inbox.list_accepted, channel, app, limit)
        return await self._database.read(work)

    async def is_known(self, channel: Channel, app: str, message_id: str) -> bool:
        """Return True if a message of that id was accepted."""
        work = partial(self._stores.inbox.get_state, channel, app, message_id)
        return await self._database.read(work) is not None

    async def list_due(self, channel: Channel, app: str, limit: int) -> list[PendingMessage]:
        """Return the oldest unsent message of each chat that may be tried now."""
        list_due = self._stores.outbox.list_due
        work = partial(list_due, channel, app, now=self._now(), limit=limit)
        return await self._database.read(work)

    async def begin_attempt(self, number: int) -> bool:
        """Count an attempt before it is made; False if the message is settled."""
        work = partial(self._stores.outbox.begin_attempt, number, self._now())
        return await self._database.write(work) is not None

    async def postpone(self, number: int, seconds: float, failure: str) -> None:
        """Store why an attempt failed; the next one may be made after `seconds`."""
        next_try = rfc3339(self._clock.now() + timedelta(seconds=seconds))
        work = partial(self._stores.outbox.postpone, number, next_try, failure)
        await self._database.write(work)

    async def mark_sent(self, number: int, remote_id: str) -> None:
        """Settle a message that was sent; `remote_id` is the channel's id for it."""
        work = partial(self._stores.outbox.mark_sent, number, remote_id, self._now())
        await self._database.write(work)

    async def give_up(self, number: int, failure: str, *, unconfirmed: bool) -> None:
        """Turn a message into a dead letter; `unconfirmed` if it may have been sent."""
        give_up = self._stores.outbox.give_up
        work = partial(give_up, number, failure, self._now(), unconfirmed=unconfirmed)
        await self._database.write(work)

    async def count_dead_letters(self, channel: Channel, app: str) -> int:
        """Return how many of the newest 100 dead letters are from this app."""
        work = partial(self._stores.outbox.list_dead_letters, MAX_COUNTED_DEAD_LETTERS)
        letters = await self._database.read(work)
        return sum(
            (letter.outgoing.channel, letter.outgoing.app) == (channel, app) for letter in letters
        )

    async def get_reply_context(self, outgoing: OutgoingMessage) -> ReplyContext:
        """Return the context of a message that is not a question."""
        run_id = RunId(outgoing.run_id)
        failed = outgoing.stop_reason in {"error", "user_stop"}

        def work() -> Read[ReplyContext]:
            run = yield from self._stores.runs.get(run_id)
            task = None if run is None else (yield from self._stores.tasks.get(run.task_id))
            last = (yield from self._stores.events.last_event(run_id)) if failed else None
            payload = _Payload() if last is None else _terminal_event(last.json).payload
            instruction = "" if task is None else task.instruction
            return ReplyContext(instruction, payload.error_code or payload.reason)

        return await self._database.read(work) if run_id else ReplyContext("", "")

    async def get_question(self, question_id: QuestionId) -> QuestionContext | None:
        """Return a question and its message, regardless of who may see it."""

        def work() -> Read[QuestionContext | None]:
            record = yield from self._stores.questions.get(question_id)
            if record is None:
                return None
            task = yield from self._stores.tasks.get(record.task_id)
            message_id = yield from self._stores.outbox.get_remote_id(f"{question_id}:asked")
            return QuestionContext(record, "" if task is None else task.instruction, message_id)

        return await self._database.read(work)

    async def find_question(self, message_id: str) -> str:
        """Return the id of the question that a sent message asks, "" for other messages."""
        return await self._database.read(partial(self._stores.outbox.find_question, message_id))

    def _now(self) -> str:
        return rfc3339(self._clock.now())
