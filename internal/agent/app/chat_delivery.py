"""The delivery of messages of chats: those received, and replies, questions and files."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import NamedTuple

import msgspec

from internal.agent.app.access import granted_rights
from internal.agent.app.chats import find_persons_task
from internal.agent.app.mentions import mentioned_people
from internal.agent.app.runs.visibility import list_newer, written_at
from internal.agent.domain.artifacts import names_file
from internal.agent.domain.chats import (
    AcceptedMessage,
    ChatSettings,
    InboundMessage,
    MessageMark,
    OutboxBacklog,
    OutgoingMessage,
    PendingMessage,
    question_key,
    reply_key,
)
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.events.types import (
    FilesChanged,
    InputReceived,
    Notice,
    PartsLeftOut,
    PeopleMentioned,
    ResultCancelled,
    ResultFinal,
)
from internal.agent.domain.ids import QuestionId, RunId, TaskId
from internal.agent.domain.left_out import LeftOut
from internal.agent.domain.principals import Right
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import (
    Attachment,
    Channel,
    Origin,
    Task,
    chat_name,
)
from internal.agent.domain.usage import Spending, Usage
from internal.agent.ports.runtime import Clock
from internal.agent.store.chats import InboxState
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.runs import LeaderFence
from internal.agent.store.stores import Stores

MAX_WAITING = timedelta(minutes=1)
"""A message that waits longer to be sent is a backlog."""

OVERTAKEN_AFTER = timedelta(seconds=30)
"""A message that fails by itself for longer no longer delays replies to other messages."""

MAX_DELAY = timedelta(minutes=15)
"""An attempt that is planned for later was planned before the clock was set back: it is due."""

MAX_PROCESSING_DELAY = timedelta(minutes=1)
"""The longest delay before a message is processed again."""

DEAD_LETTER_NOTICE = timedelta(days=1)
"""How long a message that was given up counts as a backlog."""


class _Payload(msgspec.Struct):
    error_code: str = ""
    reason: str = ""
    model: str = ""
    instead_of: str = ""
    calls_not_run: int = 0
    subtasks: int = 0
    usage: Usage = Usage()
    cost: float | None = None
    duration_ms: int = 0


class _Input(msgspec.Struct):
    sender: str = ""


class _Notice(msgspec.Struct):
    about: str = ""
    text: str = ""


class ModelLoss(msgspec.Struct, frozen=True):
    """A part that the model did not get; see `PartsLeftOut`."""

    what: LeftOut
    count: int
    tool_name: str = ""


class ChangedNames(msgspec.Struct, frozen=True):
    """The names of the first changed files of a run, and how many there are; see `FilesChanged`."""

    names: tuple[str, ...] = ()
    total: int = 0


class _ChangedName(msgspec.Struct):
    path: str


class _Changes(msgspec.Struct):
    files: tuple[_ChangedName, ...]
    total: int


class _ChangesEvent(msgspec.Struct):
    payload: _Changes


_changes_event = msgspec.json.Decoder(_ChangesEvent).decode


class _LeftOutEvent(msgspec.Struct):
    payload: ModelLoss


_left_out_event = msgspec.json.Decoder(_LeftOutEvent).decode


class _NoticeEvent(msgspec.Struct):
    payload: _Notice


_notice_event = msgspec.json.Decoder(_NoticeEvent).decode


class _InputEvent(msgspec.Struct):
    payload: _Input


_input_event = msgspec.json.Decoder(_InputEvent).decode


class _TerminalEvent(msgspec.Struct):
    payload: _Payload


_terminal_event = msgspec.json.Decoder(_TerminalEvent).decode


_TOLD = tuple(
    each.name
    for each in (
        InputReceived,
        Notice,
        PartsLeftOut,
        PeopleMentioned,
        FilesChanged,
        ResultFinal,
        ResultCancelled,
    )
)
"""The events that a reply tells about, all read by one statement."""


class MessageFacts(NamedTuple):
    """Stored facts about a message that is about to be processed, its sender and its chat.

    `granted` are the rights of the sender's role. `questions` are the open questions of the chat.
    `newer` are the ids of the questions that were asked after the message was written.
    """

    is_recalled: bool
    granted: frozenset[Right]
    questions: list[QuestionRecord]
    settings: ChatSettings
    newer: frozenset[QuestionId] = frozenset()


class NamedPicture(NamedTuple):
    """A picture that a reply may show, and the key of the message that sends only it, else ""."""

    file: Attachment
    key: str


class ReplyContext(NamedTuple):
    """The context of a reply: the `instruction` of the person, and the failure of its run.

    `failure` is an error code or the reason of a stop. Both are "" if unknown. `others` are the
    principals, besides the principal of the task, whose messages the run received. `file_problems`
    say which files of the messages could not be read, and why. `models` are the model that wrote
    the answer and the one that could not, if a fallback wrote it. `left_out` are the parts that the
    model did not get. `mentioned` are the principals whom the run mentioned. `pictures` are the
    pictures of the run that the answer may show in place. `calls_not_run` counts the last calls of
    the run if they were not run. `changed` are the files of the workspace that it changed. `person`
    is the principal who asked. `spending` is the spending of the run and its subtasks, and
    `duration_ms` its duration; None and 0 without subtasks. `not_kept` says which files of the
    session stay on one host.
    """

    instruction: str
    failure: str
    others: tuple[str, ...] = ()
    file_problems: tuple[str, ...] = ()
    session_id: str = ""
    models: tuple[str, str] | None = None
    left_out: tuple[ModelLoss, ...] = ()
    mentioned: tuple[str, ...] = ()
    pictures: tuple[NamedPicture, ...] = ()
    calls_not_run: int = 0
    changed: ChangedNames = ChangedNames()
    person: str = ""
    spending: Spending | None = None
    duration_ms: int = 0
    not_kept: tuple[str, ...] = ()


class BegunMessage(NamedTuple):
    """An outgoing message whose next attempt was counted, and the context of a reply."""

    pending: PendingMessage
    context: ReplyContext


class QuestionContext(NamedTuple):
    """A question in a chat, and the `instruction` of the person.

    `message_id` is the remote id of its message, "" if not sent.
    """

    record: QuestionRecord
    instruction: str
    message_id: str


class Acceptance(Enum):
    """The state of a received message.

    It is a duplicate, waits to be processed, or the first attempt to process it has begun.
    """

    KNOWN = "known"
    WAITS = "waits"
    BEGUN = "begun"


class ChatDelivery:
    """Accepted messages that wait to be processed, and outgoing messages that wait to be sent."""

    def __init__(self, database: Database, stores: Stores, clock: Clock) -> None:
        self._database, self._stores, self._clock = database, stores, clock
        self._loops: list[Callable[[], None]] = []

    def add_loop(self, wake: Callable[[], None]) -> None:
        """Add a callback for retries of messages that were given up."""
        self._loops.append(wake)

    def wake_loops(self) -> None:
        """Tell all loops of this process to look for messages."""
        for wake in self._loops:
            wake()

    def accept(
        self, message: InboundMessage, *, wait: float = 0.0, leader: LeaderFence | None = None
    ) -> Future[Acceptance]:
        """Store a message before it is acknowledged.

        With `leader`, the first attempt to process it begins as well, if this process leads and the
        chat has no earlier message; see `begin_processing`. Messages are stored in call order. May
        be called from any thread; see `Database.submit`.
        """
        inbox, next_attempt = self._stores.inbox, self._in(wait)

        def work() -> Write[Acceptance]:
            if not (yield from inbox.accept(message)):
                return Acceptance.KNOWN
            if leader is None:
                return Acceptance.WAITS
            begin = inbox.begin_processing(message, 1, next_attempt, leader)
            return Acceptance.BEGUN if (yield from begin) else Acceptance.WAITS

        return self._database.submit(work)

    async def accept_edited(self, row: InboundMessage, message: InboundMessage) -> bool:
        """Accept a message as it is after an edit, and mark the row of the edit as handled.

        False if it was assigned to a run or set aside; then nothing is changed.
        """
        inbox = self._stores.inbox

        def work() -> Write[bool]:
            if not (yield from inbox.accept_edited(message)):
                return False
            return (yield from inbox.dismiss(row.channel, row.app, row.message_id))

        return await self._database.write(work)

    async def get_message(
        self, channel: Channel, app: str, message_id: str
    ) -> tuple[str, InboxState | None]:
        """Return a message as its channel received it, "" if it is unknown, and its state."""
        inbox = self._stores.inbox

        def work() -> Read[tuple[str, InboxState | None]]:
            raw = yield from inbox.get_raw(channel, app, message_id)
            return raw, (yield from inbox.get_state(channel, app, message_id))

        return await self._database.read(work)

    async def list_accepted(self, channel: Channel, app: str, limit: int) -> list[AcceptedMessage]:
        """Return messages that were accepted and not processed, in order of arrival."""
        work = partial(self._stores.inbox.list_accepted, channel, app, limit)
        return await self._database.read(work)

    async def list_accepted_in(
        self, channel: Channel, app: str, chat_id: str, limit: int
    ) -> list[AcceptedMessage]:
        """Return the messages of a chat that were accepted and not processed, oldest first."""
        work = partial(self._stores.inbox.list_accepted_in, channel, app, chat_id, limit)
        return await self._database.read(work)

    async def list_raw(self, channel: Channel, app: str, prefix: str) -> list[str]:
        """Return the messages, as received, whose ids begin with an ASCII prefix."""
        return await self._database.read(partial(self._stores.inbox.list_raw, channel, app, prefix))

    async def greet(self, greeting: OutgoingMessage, message: InboundMessage, person: str) -> bool:
        """Queue the greeting of a chat unless it was greeted before, and settle its event.

        `person` is the principal of a direct chat, "" for a group. Returns False if the chat was
        greeted before.
        """
        stores, now = self._stores, self._now()
        place = (greeting.channel, greeting.app, greeting.chat_id)

        def work() -> Write[bool]:
            is_new = yield from stores.contacts.greet(*place, person=person, now=now)
            if is_new:
                yield from stores.outbox.add(greeting, now)
            yield from stores.inbox.dismiss(message.channel, message.app, message.message_id)
            return is_new

        return await self._database.write(work)

    def seconds_since(self, time: str) -> float:
        """Return how long ago a time (RFC 3339) was."""
        return (self._clock.now() - datetime.fromisoformat(time)).total_seconds()

    def seconds_until_due(self, accepted: AcceptedMessage) -> float:
        """Return how long a message waits for its next attempt, at most 0 if it is due."""
        if not accepted.next_attempt:
            return 0.0
        wait = datetime.fromisoformat(accepted.next_attempt) - self._clock.now()
        # after the clock was set back the time is far away
        return wait.total_seconds() if wait <= MAX_PROCESSING_DELAY else 0.0

    async def begin_processing(
        self,
        accepted: AcceptedMessage,
        wait: float,
        leader: LeaderFence | None = None,
        *,
        recall: str = "",
    ) -> MessageFacts | None:
        """Count an attempt before it is made; the next one is due after `wait` seconds.

        None if the message is not accepted any more, an earlier one of its chat still is or, with
        `leader`, another process leads. `recall` is the id of the message's recall.
        """
        message, attempts = accepted.message, accepted.attempts + 1
        begin = self._stores.inbox.begin_processing
        work = partial(begin, message, attempts, self._in(wait), leader)
        if not await self._database.write(work):
            return None
        return await self.get_facts(message, recall=recall)

    async def get_facts(self, message: InboundMessage, *, recall: str = "") -> MessageFacts:
        """Return the stored facts about a message whose processing has begun."""
        return await self._database.read(
            partial(self._message_facts, message, recall), is_short=True
        )

    def _message_facts(self, message: InboundMessage, recall: str) -> Read[MessageFacts]:
        stores, chat = self._stores, chat_name(message.channel, message.app, message.chat_id)
        recalled = yield from stores.inbox.get_state(message.channel, message.app, recall)
        granted = yield from granted_rights(stores, message.principal)
        questions = yield from stores.questions.list_open_in_chat(chat)
        settings = yield from stores.chats.get_settings(chat)
        newer = yield from list_newer(stores, questions, written_at(message))
        return MessageFacts(recalled is not None, granted, questions, settings, newer)

    async def postpone_processing(
        self, accepted: AcceptedMessage, attempts: int, *, wait: float, failure: str
    ) -> None:
        """Store how many attempts count, and why the last one failed."""
        postpone = partial(self._stores.inbox.postpone_processing, accepted.message, attempts)
        await self._database.write(partial(postpone, next_attempt=self._in(wait), failure=failure))

    def undo_attempt(self, accepted: AcceptedMessage) -> None:
        """Store that the attempt that was begun does not count, without waiting for it."""
        _, attempts, next_attempt, failure = accepted
        undo = partial(self._stores.inbox.postpone_processing, accepted.message, attempts)
        self._database.submit(partial(undo, next_attempt=next_attempt, failure=failure))

    async def set_aside(
        self,
        accepted: AcceptedMessage,
        failure: str,
        *,
        text: str = "",
        reply: OutgoingMessage | None = None,
    ) -> None:
        """Turn a message that cannot be processed into a dead letter, and queue a reply to it."""
        inbox, outbox, now = self._stores.inbox, self._stores.outbox, self._now()

        def work() -> Write[None]:
            aside = inbox.set_aside(accepted.message, failure=failure, text=text, now=now)
            if (yield from aside) and reply is not None:
                yield from outbox.add(reply, now)

        await self._database.write(work)

    async def get_task_message(self, task: Task) -> str:
        """Return the message that a task came from as its channel received it, "" if unknown."""
        origin, get_raw = task.origin, self._stores.inbox.get_raw
        work = partial(get_raw, origin.channel, origin.app, origin.message_id)
        return await self._database.read(work)

    async def note_reaction(
        self, channel: Channel, app: str, message_id: str, *, reaction: str, run_id: str
    ) -> None:
        """Store a reaction on a received message; see `InboxStore.note_reaction`."""
        note = partial(self._stores.inbox.note_reaction, channel, app, message_id)
        await self._database.write(partial(note, reaction=reaction, run_id=run_id))

    async def list_settled_reactions(
        self, channel: Channel, app: str, limit: int
    ) -> list[MessageMark]:
        """Return the reactions on messages whose run has ended."""
        work = partial(self._stores.inbox.list_settled_reactions, channel, app, limit)
        return await self._database.read(work)

    async def clear_reaction(self, number: int) -> None:
        """Store that a message has its last reaction."""
        await self._database.write(partial(self._stores.inbox.clear_reaction, number))

    async def list_to_urge(self, account: str, wait: timedelta, limit: int) -> list[QuestionRecord]:
        """Return open questions of the chats of an account that wait for so long.

        Those that people were alerted to are left out.
        """
        until = rfc3339(self._clock.now() - wait)
        work = partial(self._stores.questions.list_to_urge, account, until, limit)
        return await self._database.read(work)

    async def mark_urged(self, question_id: QuestionId) -> bool:
        """Store that people are alerted to a question now; False if they were before."""
        work = partial(self._stores.questions.mark_urged, question_id, self._now())
        return await self._database.write(work)

    async def unmark_urged(self, question_id: QuestionId) -> None:
        """Store that nobody was alerted to a question after all."""
        await self._database.write(partial(self._stores.questions.unmark_urged, question_id))

    async def list_due(self, channel: Channel, app: str, limit: int) -> list[PendingMessage]:
        """Return the oldest unsent message of each chat that may be tried now.

        A message that has failed by itself for over 30 s is overtaken by replies to other messages.
        """
        return await self._database.read(partial(self._list_due, channel, app, limit))

    async def begin_due(
        self,
        channel: Channel,
        app: str,
        limit: int,
        *,
        leader: LeaderFence | None = None,
        busy: Iterable[int] = (),
    ) -> list[BegunMessage]:
        """Count an attempt of each message that is due before it is made, except the `busy` ones.

        With `leader` none is begun when another process leads.
        """
        now, excluded = self._now(), frozenset(busy)

        def work() -> Write[list[BegunMessage]]:
            begun: list[BegunMessage] = []
            for pending in (yield from self._list_due(channel, app, limit)):
                number = pending.number
                if number in excluded:
                    continue
                begin = self._stores.outbox.begin_attempt(number, now, leader)
                if (yield from begin) is not None:
                    context = yield from self._reply_context(pending.outgoing)
                    begun.append(BegunMessage(pending, context))
            return begun

        return await self._database.write(work)

    def _list_due(self, channel: Channel, app: str, limit: int) -> Read[list[PendingMessage]]:
        now = self._clock.now()
        return self._stores.outbox.list_due(
            channel,
            app,
            now=rfc3339(now),
            limit=limit,
            failing_since=rfc3339(now - OVERTAKEN_AFTER),
            latest=rfc3339(now + MAX_DELAY),
        )

    async def postpone(
        self,
        number: int,
        seconds: float,
        failure: str,
        *,
        unconfirmed: bool,
        isolated: bool = False,
    ) -> None:
        """Store why an attempt failed; the next one may be made after `seconds`.

        `unconfirmed`: an attempt so far may have sent the message. `isolated`: other calls of the
        account succeed.
        """
        postpone, next_try = self._stores.outbox.postpone, self._in(seconds)
        work = partial(
            postpone, number, next_try, failure, unconfirmed=unconfirmed, isolated=isolated
        )
        await self._database.write(work)

    async def list_sent_ids(self, outgoing: OutgoingMessage, since: str) -> frozenset[str]:
        """Return the channel's ids of the messages sent since then to the chat of a message."""
        return await self._database.read(
            partial(self._stores.outbox.list_sent_ids, outgoing, since)
        )

    async def mark_sent(
        self,
        number: int,
        remote_id: str,
        sent_at: datetime | None = None,
        *,
        contained: Iterable[str] = (),
    ) -> bool:
        """Settle a message that was sent; `remote_id` is the channel's id for it.

        `sent_at` is its time by the clock of the chat service, None if unknown. `contained` are the
        keys of messages whose content is in this one: they are settled with it.
        Returns whether other messages of its chat are waiting.
        """
        outbox, now, keys = self._stores.outbox, self._now(), tuple(contained)
        sent = "" if sent_at is None else rfc3339(sent_at)

        def work() -> Write[bool]:
            yield from outbox.mark_sent(number, remote_id, now, sent=sent)
            if keys:
                yield from outbox.mark_contained(keys, remote_id, now)
            return (yield from outbox.has_pending_beside(number))

        return await self._database.write(work)

    async def give_up(self, number: int, failure: str, *, unconfirmed: bool) -> None:
        """Turn a message into a dead letter; `unconfirmed` if it may have been sent."""
        give_up = self._stores.outbox.give_up
        work = partial(give_up, number, failure, self._now(), unconfirmed=unconfirmed)
        await self._database.write(work)

    async def drop(self, channel: Channel, app: str, chat_id: str, why: str) -> int:
        """Settle all messages that wait for a chat as dropped; return their number."""
        drop = partial(self._stores.outbox.drop, channel, app, chat_id)
        return await self._database.write(partial(drop, why=why, now=self._now()))

    async def backlog(self, channel: Channel, app: str) -> OutboxBacklog:
        """Return how many messages wait for over a minute, and were given up in the last day."""
        now = self._clock.now()
        get_backlog = partial(
            self._stores.outbox.get_backlog,
            channel,
            app,
            waiting_since=rfc3339(now - MAX_WAITING),
            given_up_since=rfc3339(now - DEAD_LETTER_NOTICE),
        )
        return await self._database.read(get_backlog)

    async def get_reply_context(self, outgoing: OutgoingMessage) -> ReplyContext:
        """Return the context of a message that is not a question."""
        return await self._database.read(partial(self._reply_context, outgoing))

    def _reply_context(self, outgoing: OutgoingMessage) -> Read[ReplyContext]:
        run_id = RunId(outgoing.run_id)
        if not run_id or outgoing.question_id:
            return ReplyContext("", "")
        run = yield from self._stores.runs.get(run_id)
        task = None if run is None else (yield from self._stores.tasks.get(run.task_id))
        found: dict[str, list[bytes]] = {kind: [] for kind in _TOLD}
        for each in (yield from self._stores.events.list_of_kinds(run_id, _TOLD)):
            found[each.event].append(each.json)
        ends = found[ResultFinal.name] + found[ResultCancelled.name]
        payload = _terminal_event(ends[-1]).payload if ends else _Payload()
        failed = outgoing.stop_reason in {"error", "user_stop", "budget_exceeded"}
        failure = (payload.error_code or payload.reason) if failed else ""
        models = (payload.model, payload.instead_of) if payload.instead_of else None
        if task is None:
            return ReplyContext("", failure, models=models)
        inputs = found[InputReceived.name]
        senders = dict.fromkeys(_input_event(each).payload.sender for each in inputs)
        senders.pop(task.origin.principal, None)
        notices = [_notice_event(each).payload for each in found[Notice.name]]
        problems = tuple(each.text for each in notices if each.about == "input_files")
        left_out = [_left_out_event(each).payload for each in found[PartsLeftOut.name]]
        asked = yield from find_persons_task(self._stores, task)
        return ReplyContext(
            asked.instruction,
            failure,
            tuple(senders),
            problems,
            task.session_id,
            models,
            tuple(dict.fromkeys(left_out)),
            mentioned_people(found[PeopleMentioned.name]),
            tuple((yield from self._named_pictures(outgoing))),
            payload.calls_not_run,
            _changed_names(found[FilesChanged.name]) if _is_reply(outgoing) else ChangedNames(),
            asked.origin.principal,
            *_spent(payload),
            tuple(each.text for each in notices if each.about == "kept_files"),
        )

    def _named_pictures(self, outgoing: OutgoingMessage) -> Read[list[NamedPicture]]:
        """Return the pictures of a run whose names are in its reply, from the messages after it."""
        if not _is_reply(outgoing) or "![" not in outgoing.body:  # most replies show none
            return []
        found: list[NamedPicture] = []
        for key, files in (yield from self._stores.outbox.list_files(outgoing)):
            found += [
                NamedPicture(file, key if len(files) == 1 else "")
                for file in files
                if file.media_type.startswith("image/") and names_file(outgoing.body, file.name)
            ]
        # two of one name in different folders cannot be told apart
        names = Counter(each.file.name for each in found)
        return [each for each in found if names[each.file.name] == 1]

    async def get_question(
        self, question_id: QuestionId, recipient: str = ""
    ) -> QuestionContext | None:
        """Return a question and its message, regardless of who may see it.

        With a `recipient` the message is the copy for that user.
        """
        key = question_key(question_id, recipient)

        def work() -> Read[QuestionContext | None]:
            record = yield from self._stores.questions.get(question_id)
            if record is None:
                return None
            task = yield from self._stores.tasks.get(record.task_id)
            message_id = yield from self._stores.outbox.get_remote_id(key)
            if task is None:
                return QuestionContext(record, "", message_id)
            asked = yield from find_persons_task(self._stores, task)
            return QuestionContext(record, asked.instruction, message_id)

        return await self._database.read(work)

    async def get_origin(self, task_id: TaskId) -> Origin | None:
        """Return the origin of a task, None if the task is unknown."""
        task = await self._database.read(partial(self._stores.tasks.get, task_id))
        return None if task is None else task.origin

    async def name_answerer(self, question_id: QuestionId, name: str) -> None:
        """Store the name of the person who answered, unless the answer has one."""
        await self._database.write(partial(self._stores.questions.name_answerer, question_id, name))

    async def find_question(self, message_id: str) -> str:
        """Return the id of the question that a sent message asks, "" for other messages."""
        return await self._database.read(partial(self._stores.outbox.find_question, message_id))

    def _in(self, seconds: float) -> str:
        return rfc3339(self._clock.now() + timedelta(seconds=seconds))

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _is_reply(outgoing: OutgoingMessage) -> bool:
    return outgoing.key == reply_key(outgoing.run_id)


def _spent(end: _Payload) -> tuple[Spending | None, int]:
    """Return the spending and duration of a run with subtasks, from its last event."""
    if not end.subtasks:
        return None, 0
    return Spending(end.usage, end.cost, end.subtasks), end.duration_ms


def _changed_names(events: Sequence[bytes]) -> ChangedNames:
    """Return the files of the last event, which replaces those before it."""
    if not events:
        return ChangedNames()
    found = _changes_event(events[-1]).payload
    return ChangedNames(tuple(each.path for each in found.files), found.total)
