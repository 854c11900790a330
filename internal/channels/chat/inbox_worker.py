"""Process accepted messages: as commands, answers, steering, tasks, or with a short reply.

The messages of one chat are processed one at a time in the order of arrival; chats are independent
of each other. An accepted row stays in the inbox until it is settled here. A message that this
process accepted is handed over without reading it again; the inbox is read at the start, for what
is due, and for messages that other processes accepted or that were too many.
"""

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime

import msgspec
from cachetools import TTLCache

from internal.agent.app.chat_delivery import MessageFacts
from internal.agent.app.edited_messages import MessageEdit
from internal.agent.app.gateway import Gateway
from internal.agent.app.processes.leadership import Leadership
from internal.agent.app.runs.finalization import LEFT_CHAT
from internal.agent.app.runs.questions import Actor
from internal.agent.app.supervision import Supervisor
from internal.agent.app.task_commands import RecallRequest
from internal.agent.app.task_options import TaskDefaults
from internal.agent.capabilities.instructions.chat_instructions import ChatInstructions
from internal.agent.domain.chats import (
    AcceptedMessage,
    InboundMessage,
    OutgoingMessage,
    edited_message_id,
)
from internal.agent.domain.errors import (
    Conflict,
    FilesUnavailable,
    LarkspurError,
    MessageRefused,
    ProfileUnusable,
    RunStopped,
    StoreError,
    StoreUnavailable,
    TooManyTasks,
)
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.secrets import mask_secrets
from internal.agent.domain.tasks import STEADY_SECONDS, Task, chat_name
from internal.agent.domain.text import truncate_line
from internal.channels.chat.answers import (
    ChatRef,
    CommandResult,
    MessageContext,
    TextAnswers,
)
from internal.channels.chat.background import BackgroundReader, PromptBuilder
from internal.channels.chat.command_handlers import CommandHandlers
from internal.channels.chat.command_parser import (
    parse_command,
    read_menu_key,
)
from internal.channels.chat.gathered_messages import MessageGatherer, without_words
from internal.channels.chat.greetings import build_greeting
from internal.channels.chat.policy import (
    Accepted,
    ChatUsers,
    Ignored,
    Reply,
    SenderContext,
    check_message,
    is_empty,
    is_for_bot,
    needs_sender_lookup,
    needs_thread_lookup,
    serves_chat,
)
from internal.channels.chat.poll_loop import PollLoop
from internal.channels.chat.reactions import ReactionFeedback
from internal.channels.chat.task_router import TaskRouter
from internal.channels.chat.transport import (
    ChatEvent,
    ChatOpened,
    ChatTransport,
    EditedMessage,
    IncomingMessage,
    MenuChoice,
    MessageReaction,
    RecalledMessage,
    RemovedFromChat,
    TransportRejected,
    TransportUnavailable,
    recall_id,
)
from internal.i18n.chat import ChatTexts
from internal.settings.chat import ChatChannelSettings, SessionScope

log = logging.getLogger(__name__)

MAX_BOT_TURNS = 10
"""Messages of bots in a row, without one of a person, that are answered in a chat."""
SWEEP_SECONDS = 30.0
RETRY_SECONDS = (1.0, 5.0, 0.0)
"""The delays after failed attempts to process a message; its chat waits meanwhile."""
MAX_ATTEMPTS = len(RETRY_SECONDS)
"""A message that fails so often is set aside."""
RECHECK_SECONDS = 0.2
"""The delay before the inbox is read after a message was not to be processed yet."""
UNAVAILABLE_SECONDS = 10.0
"""The delay after an attempt that does not count, because a service could not be reached."""
DIED = "The process died {} times while it processed this message."
MAX_FAILURE_CHARACTERS = 500
_PAGE_SIZE = 1_000
_CACHE_SIZE, _THREAD_SECONDS, _LOOKUP_TIMEOUT_SECONDS = 2_048, 3_600.0, 2.0


def conversation_scope(channel: str, message: IncomingMessage, kind: SessionScope) -> str:
    """Return the scope of a message's session: 24 hexadecimal digits after the channel.

    A message outside of threads belongs to the conversation of its chat, or of its sender there.
    """
    name = message.chat_id
    if message.thread_id and kind in {"thread", "thread_sender"}:
        name += f"\nthread {message.thread_id}"
    if not message.is_direct and kind in {"sender", "thread_sender"}:
        name += f"\nsender {message.user_id}"
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).digest()
    return f"{channel}-{digest[:12].hex()}"


class InboxListener(msgspec.Struct, frozen=True):
    """Callbacks of the worker.

    `on_run` gets a run to display, `on_received` a message to confirm with a reaction and the run
    that an answer or a command is about; `on_outgoing` is called when there is something to send.
    """

    on_run: Callable[[RunId], None]
    on_received: Callable[[str, RunId | None], None]
    on_outgoing: Callable[[], None]


class InboxWorker:
    """Processes the messages of one account until cancelled."""

    def __init__(
        self,
        transport: ChatTransport,
        gateway: Gateway,
        people: ChatUsers,
        *,
        settings: ChatChannelSettings,
        defaults: TaskDefaults,
        texts: ChatTexts,
        listener: InboxListener,
        instructions: ChatInstructions,
    ) -> None:
        self._transport, self._gateway, self._people = transport, gateway, people
        self._settings, self._texts, self._listener = settings, texts, listener
        self._answers = TextAnswers(gateway, people)
        self._commands = CommandHandlers(
            gateway,
            people,
            self._answers,
            settings=settings,
            defaults=defaults,
            instructions=instructions,
        )
        self._background = BackgroundReader(transport, gateway, people, settings)
        self._prompts = PromptBuilder(self._background, people)
        self._router = TaskRouter(gateway, settings, defaults, transport.known_time_zone)
        self._reactions = ReactionFeedback(transport, gateway, people)
        self._direct_chats: TTLCache[tuple[str, str], bool] = TTLCache(_CACHE_SIZE, _THREAD_SECONDS)
        """The direct chats that are stored, by chat and user."""
        self._poll = PollLoop(SWEEP_SECONDS, f"{transport.name} inbox")
        self._steady_at = 0.0
        self._chats: dict[str, deque[AcceptedMessage]] = {}
        """The messages that are being processed or come next, by chat."""
        self._has_more = False
        """Whether messages are accepted that are not among them."""
        self._leadership: Leadership | None = None
        self._alone = asyncio.Lock()
        self._begun: set[str] = set()
        """The ids of messages whose first attempt was counted when they were accepted."""
        self._unstored: dict[str, AcceptedMessage] = {}
        """Messages by id whose last attempt does not count, which could not be stored."""
        self._threads: TTLCache[str, bool] = TTLCache(_CACHE_SIZE, _THREAD_SECONDS)
        """Whether the bot takes part in a thread."""
        self._gatherer = MessageGatherer(transport, gateway, settings, texts, threads=self._threads)

    def wake(self) -> None:
        """Look for accepted messages now."""
        self._poll.wake()
        self._gatherer.notify()

    def take(self, message: InboundMessage, *, is_begun: bool = False) -> None:
        """Process a message that this process has just accepted, if it leads.

        `is_begun`: the first attempt was counted when it was accepted.
        """
        accepted, chat_id = AcceptedMessage(message), message.chat_id
        if is_begun:
            self._begun.add(message.message_id)
        if sum(map(len, self._chats.values())) >= _PAGE_SIZE:
            self._has_more = True
            self._undo([accepted])
        elif chat_id in self._chats:
            self._chats[chat_id].append(accepted)
            self._gatherer.notify(chat_id)
        else:
            self._begin(chat_id, [accepted])

    async def run(self, supervisor: Supervisor, leadership: Leadership) -> None:
        """Process messages on every wake and every 30 s, while this process leads."""
        self._steady_at = asyncio.get_running_loop().time() + STEADY_SECONDS
        self._leadership = leadership
        await self._poll.run(self._start, supervisor)

    async def _start(self, _: asyncio.TaskGroup) -> None:
        transport, chats = self._transport, dict[str, list[AcceptedMessage]]()
        found = await self._gateway.delivery.list_accepted(
            transport.name, transport.app, _PAGE_SIZE
        )
        for accepted in found:
            chats.setdefault(accepted.message.chat_id, []).append(accepted)
        for chat_id, waiting in chats.items():
            if chat_id not in self._chats:
                if self._is_due(waiting[0]):
                    self._begin(chat_id, waiting)
            elif len(waiting) > len(self._chats[chat_id]):
                self._has_more = True
        self._has_more = self._has_more or len(found) == _PAGE_SIZE

    def _begin(self, chat_id: str, waiting: Sequence[AcceptedMessage]) -> None:
        """Process messages of a chat that is idle, while this process leads."""
        if self._poll.tasks is not None and self._leadership is not None:
            self._chats[chat_id] = deque(waiting)
            self._poll.tasks.create_task(self._process_chat(chat_id, self._leadership))
        else:
            self._undo(waiting)

    def _undo(self, waiting: Iterable[AcceptedMessage]) -> None:
        """Store that attempts do not count that were begun by the acceptance and are not made."""
        for accepted in waiting:
            if accepted.message.message_id in self._begun:
                self._begun.discard(accepted.message.message_id)
                with suppress(StoreError):
                    self._gateway.delivery.undo_attempt(accepted)

    def _is_due(self, accepted: AcceptedMessage) -> bool:
        """Return True if a message may be processed now; otherwise wake when it may be."""
        wait = self._gateway.delivery.seconds_until_due(accepted)
        if accepted.may_crash and accepted.attempts == MAX_ATTEMPTS - 1:
            wait = max(wait, self._steady_at - asyncio.get_running_loop().time())
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self.wake)
        return wait <= 0

    async def _process_chat(self, chat_id: str, leadership: Leadership) -> None:
        """Process the messages of a chat until one has to wait for its next attempt."""
        waiting = self._chats[chat_id]
        try:
            while waiting:
                # it runs beside no other that may have ended the process, so that one message
                # does not count against the others
                async with self._alone if waiting[0].may_crash else nullcontext():
                    is_settled = await self._process(waiting[0], leadership)
                if not is_settled:
                    self._has_more = True
                    break
                waiting.popleft()
            if self._has_more:
                self._has_more = False
                self._poll.wake()
        except Exception:  # a channel's outer loop: the rows stay and are processed later
            log.exception("messages of a chat not processed", extra={"chat": chat_id})
            asyncio.get_running_loop().call_later(UNAVAILABLE_SECONDS, self.wake)
        finally:
            self._undo(waiting)
            del self._chats[chat_id]

    async def _process(self, accepted: AcceptedMessage, leadership: Leadership) -> bool:
        """Make an attempt to process a message. Return False if it waits for the next one.

        An attempt is counted before it is made: a process that dies of it counts as well. It is not
        made when another process leads, which goes on with this message, or when the inbox has an
        earlier one of the chat.

        Raises:
            StoreError: the outcome is not stored.
        """
        row, delivery = accepted.message, self._gateway.delivery
        accepted = self._unstored.pop(row.message_id, accepted)
        attempts = accepted.attempts
        if attempts >= MAX_ATTEMPTS:
            await self._set_aside(accepted, DIED.format(attempts), None)
            return True
        event: ChatEvent | None = None
        recall = recall_id(edited_message_id(row.message_id))  # it may arrive before its message
        try:
            facts: MessageFacts | None
            if row.message_id in self._begun:
                self._begun.discard(row.message_id)
                facts = await delivery.get_facts(row, recall=recall)
            else:
                facts = await delivery.begin_processing(
                    accepted, RETRY_SECONDS[attempts], leadership.held, recall=recall
                )
            if facts is None:
                asyncio.get_running_loop().call_later(RECHECK_SECONDS, self.wake)
                return True
            event = await self._transport.parse(row.raw)
            await self._settle(row, event, facts)
        except asyncio.CancelledError:  # the process shuts down
            with suppress(StoreError):
                delivery.undo_attempt(accepted)
            raise
        except Exception as error:
            log.exception("message not processed", extra={"message_id": row.message_id})
            return await self._store_failure(accepted, error, event)
        return True

    async def _store_failure(
        self, accepted: AcceptedMessage, error: Exception, event: ChatEvent | None
    ) -> bool:
        """Set a message aside after its last attempt and return True; else postpone it."""
        attempts, failure = accepted.attempts, _describe(error)
        try:
            if _is_temporary(error):
                wait = UNAVAILABLE_SECONDS
            elif attempts + 1 < MAX_ATTEMPTS:
                wait, attempts = RETRY_SECONDS[attempts], attempts + 1
            else:
                await self._set_aside(accepted, failure, event)
                return True
            await self._gateway.delivery.postpone_processing(
                accepted, attempts, wait=wait, failure=failure
            )
        except StoreUnavailable:  # the attempt that was begun is not one of the message
            self._unstored[accepted.message.message_id] = accepted
            raise
        return False

    async def _settle(
        self, row: InboundMessage, event: ChatEvent | None, facts: MessageFacts
    ) -> None:
        try:
            await self._dispatch(row, event, facts)
        except Conflict:
            log.info("message already processed", extra={"message_id": row.message_id})
        except MessageRefused as error:
            await self._reply(row, str(error))
        except TooManyTasks as error:
            phrases = self._texts.phrases_for(row.raw)
            await self._reply(row, phrases("too_many_tasks", limit=error.limit))
        except ProfileUnusable as error:  # its details are for the administrator
            log.warning("message refused", extra={"message_id": row.message_id, "why": str(error)})
            await self._reply(row, self._texts.phrases_for(row.raw)("profile_unusable"))

    async def _set_aside(
        self, accepted: AcceptedMessage, failure: str, event: ChatEvent | None
    ) -> None:
        """Make a message a dead letter, and tell its sender if it is for the bot."""
        row, reply = accepted.message, None
        message = event if isinstance(event, IncomingMessage) else None
        text = "" if message is None else message.text or ""
        if event is None or (message is not None and self._is_for_bot(message)):
            phrases = self._texts.phrases_for(row.raw)
            reply = self._answer_to(row, "failed", phrases("failed_inside"))
        await self._gateway.delivery.set_aside(accepted, failure, text=text, reply=reply)
        details = {"message_id": row.message_id, "chat": row.chat_id, "reason": failure}
        log.error("message set aside", extra=details)
        self._listener.on_outgoing()

    def _is_for_bot(self, message: IncomingMessage) -> bool:
        in_our_thread = self._threads.get(message.thread_id, False)
        return is_for_bot(message, self._settings, in_our_thread=in_our_thread)

    async def _dispatch(
        self, row: InboundMessage, message: ChatEvent | None, facts: MessageFacts
    ) -> None:
        match message:
            case None:
                await self._ignore(row, "it cannot be read")
            case RecalledMessage(message_id, by_sender):
                recall = RecallRequest(
                    row.channel, row.app, message_id, row.principal, by_sender=by_sender
                )
                outcome = await self._gateway.recall(recall)
                await self._ignore(row, f"a message was recalled: {outcome}")
                self._listener.on_outgoing()
            case EditedMessage(message_id):
                await self._edit(row, message_id, facts)
            case RemovedFromChat(at):
                await self._leave(row, at)
            case MessageReaction():
                await self._ignore(row, await self._reactions.store(row, message))
            case ChatOpened():
                await self._greet(row, message)
            case MenuChoice():
                await self._choose(row, message, facts)
            case IncomingMessage():
                await self._check(row, message, facts)

    async def _greet(self, row: InboundMessage, opened: ChatOpened) -> None:
        """Introduce the bot to a chat, once, if it serves the user who opened it or added it."""
        is_direct, settings = opened.is_direct, self._settings
        person = self._people.principal_id(opened.user_id) if is_direct else ""
        if is_direct:
            await self._remember_direct(row.chat_id, opened.user_id)
        is_served = serves_chat(settings, row.chat_id, is_direct=is_direct)
        principal = await self._people.principal(
            opened.user_id, row.chat_id, is_external=opened.is_external
        )
        if not settings.greeting or not is_served or not principal.may("talk") or opened.is_known:
            await self._ignore(row, "a chat was opened that is not greeted")
            return
        name = opened.name or await self._people.name(opened.user_id)
        greeting = build_greeting(row, self._texts.phrases_for(name), is_direct=is_direct)
        if await self._gateway.delivery.greet(greeting, row, person):
            self._listener.on_outgoing()
        else:
            log.info("chat was greeted before", extra={"chat": row.chat_id})

    async def _choose(self, row: InboundMessage, choice: MenuChoice, facts: MessageFacts) -> None:
        """Carry out the command of a menu entry in the direct chat of the user."""
        person, user_id = self._people.principal_id(choice.user_id), choice.user_id
        chats, transport = self._gateway.chats, self._transport
        known = await chats.find_direct(transport.name, transport.app, person)
        row = msgspec.structs.replace(row, chat_id=known or user_id)
        command = IncomingMessage(
            row.message_id,
            row.chat_id,
            user_id,
            read_menu_key(choice.key),
            is_direct=True,
            is_mention=True,
            is_from_person=True,
            sent_at=choice.chosen_at,
        )
        if known:
            facts = await self._gateway.delivery.get_facts(row, recall=recall_id(row.message_id))
        await self._check(row, command, facts)

    async def _remember_direct(self, chat_id: str, user_id: str) -> None:
        """Store whose direct chat a chat is: events of the menu name only the user."""
        key = (chat_id, user_id)
        if key not in self._direct_chats:
            transport, person = self._transport, self._people.principal_id(user_id)
            await self._gateway.chats.add_direct(transport.name, transport.app, chat_id, person)
            self._direct_chats[key] = True

    async def _edit(self, row: InboundMessage, message_id: str, facts: MessageFacts) -> None:
        """Let an edited message start a task, replace it while it waits, or tell its run."""
        delivery = self._gateway.delivery
        raw, state = await delivery.get_message(row.channel, row.app, message_id)
        if facts.is_recalled:
            await self._ignore(row, "it was recalled")
            return
        if state is not None and state.run_id and state.status == "handled":
            await self._ignore(row, "the message was answered before its edit")
            return
        try:
            received = await self._transport.read_edited(row.raw, raw)
        except TransportRejected as error:
            await self._ignore(row, f"an edited message cannot be read: {error}")
            return
        message = await self._transport.parse(received.raw)
        before = await self._transport.parse(raw) if raw else None
        if not isinstance(message, IncomingMessage) or (
            isinstance(before, IncomingMessage) and before.user_id != message.user_id
        ):
            await self._ignore(row, "an edit is not of the person who wrote the message")
            return
        current = msgspec.structs.replace(
            row,
            message_id=message_id,
            principal=self._people.principal_id(message.user_id),
            raw=received.raw,
            sent="" if received.sent_at is None else rfc3339(received.sent_at),
        )
        if state is not None and state.run_id:
            await self._change(row, current, message)
            return
        # one that is accepted and not processed is replaced, whatever it said
        is_processed = state is not None and state.status != "accepted"
        known = before if is_processed and isinstance(before, IncomingMessage) else None
        if why := await self._why_not_started(message, known):
            await self._ignore(row, why)
        elif await delivery.accept_edited(row, current):
            log.info("edited message accepted", extra={"message_id": message_id})
            self._take_edited(current)
        else:
            await self._ignore(row, "the edited message was set aside")

    async def _why_not_started(
        self, message: IncomingMessage, before: IncomingMessage | None
    ) -> str:
        """Return why a message that has no task does not get one by its edit, "" if it does."""
        if before is not None:
            if (before.text, before.is_mention) == (message.text, message.is_mention):
                return "an edit changed nothing that is read"
            if not is_empty(before) and await self._is_addressed(before):
                return "the message was answered before its edit"
        return "" if await self._is_addressed(message) else "the edited message is not for the bot"

    async def _is_addressed(self, message: IncomingMessage) -> bool:
        message = await self._as_mention(message)
        in_our_thread = await self._is_in_our_thread(message)
        return is_for_bot(message, self._settings, in_our_thread=in_our_thread)

    async def _as_mention(self, message: IncomingMessage) -> IncomingMessage:
        """Return a message as a mention if it replies to the bot."""
        is_reply = needs_sender_lookup(message, self._settings)
        if is_reply and await self._background.is_reply_to_bot(message):
            return message._replace(is_mention=True)
        return message

    async def _change(
        self, row: InboundMessage, current: InboundMessage, message: IncomingMessage
    ) -> None:
        """Replace a message that waits for its run, or tell its run what it says now."""
        facts = await self._gateway.delivery.get_facts(current)
        message = message._replace(is_mention=True)  # it was for the bot when its run was created
        sender = SenderContext(
            current.principal, datetime.fromisoformat(row.received), facts.granted
        )
        match check_message(message, self._settings, sender, texts=self._texts):
            case Ignored(reason):
                await self._ignore(row, reason)
            case Reply(text):
                await self._reply(row, text)
            case Accepted() as accepted:
                context = self._context(current, message, accepted, facts)
                await self._change_run(
                    row, context, accepted.text or without_words(message, context.phrases)
                )

    async def _change_run(self, row: InboundMessage, context: MessageContext, text: str) -> None:
        new = await self._prompts.build(context, text)
        said = context.phrases("edited", text=text)
        told = await self._prompts.build_alone(context, said)
        build = self._router.build
        edit = MessageEdit(
            msgspec.structs.replace(
                row, principal=context.row.principal, thread_id=context.incoming.thread_id
            ),
            build(context, text, prompt=new.text, attachments=new.attachments),
            build(context, said, prompt=told.text, attachments=told.attachments),
        )
        result = await self._gateway.edit(edit, context.actor.principal)
        message_id = context.row.message_id
        log.info("message edited", extra={"message_id": message_id, "result": result})
        if result in {"replaced", "told"}:
            self._listener.on_received(message_id, None)

    def _take_edited(self, message: InboundMessage) -> None:
        """Process a message as it is after its edit, also if it waits to be processed."""
        waiting = self._chats.get(message.chat_id, deque())
        for number, each in enumerate(waiting):
            if each.message.message_id == message.message_id:
                waiting[number] = AcceptedMessage(message)
                return
        self.take(message)

    async def _leave(self, row: InboundMessage, at: datetime | None) -> None:
        """Stop what was asked in the chat before the bot was removed, and drop what waits for it.

        What was asked since then is kept: the bot may have been added again.
        """
        chat = chat_name(row.channel, row.app, row.chat_id)
        stopped = RunStopped(row.principal, row.channel, LEFT_CHAT)
        for _, task in await self._gateway.chats.list_unfinished_in(chat):
            if not await self._is_newer(task, at):
                with suppress(Conflict):  # it has ended meanwhile
                    await self._gateway.stop_by_channel(task, stopped)
        dropped = await self._gateway.delivery.drop(row.channel, row.app, row.chat_id, LEFT_CHAT)
        await self._ignore(row, f"{LEFT_CHAT}; {dropped} outgoing messages were dropped")

    async def _is_newer(self, task: Task, at: datetime | None) -> bool:
        """Return True if the message of a task was sent after a time."""
        raw = await self._gateway.delivery.get_task_message(task)
        match await self._transport.parse(raw) if raw else None:
            case IncomingMessage(sent_at=datetime() as sent_at) if at is not None:
                return sent_at > at
            case _:
                return False

    async def _check(
        self, row: InboundMessage, message: IncomingMessage, facts: MessageFacts
    ) -> None:
        if facts.is_recalled:
            await self._ignore(row, "it was recalled")
            return
        message = await self._as_mention(message)
        sender = SenderContext(
            principal_id=self._people.principal_id(message.user_id),
            received=datetime.fromisoformat(row.received),
            granted=facts.granted,
            in_our_thread=await self._is_in_our_thread(message),
        )
        if message.is_direct and message.is_from_person and message.chat_id != message.user_id:
            await self._remember_direct(message.chat_id, message.user_id)
        decision = check_message(message, self._settings, sender, texts=self._texts)
        if message.is_partial and isinstance(decision, Accepted):
            message = await self._transport.complete(message)
            decision = check_message(message, self._settings, sender, texts=self._texts)
        if self._settings.answer_bots and not message.is_direct:
            decision = await self._limit_bots(message, decision)
        match decision:
            case Ignored(reason):
                await self._ignore(row, reason)
            case Reply(text):
                await self._reply(row, text)
            case Accepted() as accepted:
                await self._handle(row, message, accepted, facts)

    async def _limit_bots(
        self, message: IncomingMessage, checked: Ignored | Reply | Accepted
    ) -> Ignored | Reply | Accepted:
        """Return what is done with a message in a group that other bots may write to.

        After `MAX_BOT_TURNS` messages of bots without one of a person, the next one gets a note and
        all further ones nothing, so that bots do not answer each other for ever.
        """
        place = (self._transport.name, self._transport.app, message.chat_id)
        if message.is_from_person:
            await self._gateway.chats.end_bot_turns(*place)
        elif not isinstance(checked, Ignored):
            turns = await self._gateway.chats.count_bot_turn(*place)
            if turns == MAX_BOT_TURNS + 1:
                phrases = self._texts.phrases_for(message.text or "")
                return Reply(phrases("bots_paused", count=MAX_BOT_TURNS))
            if turns > MAX_BOT_TURNS:
                return Ignored("so many messages of bots came in a row")
        return checked

    async def _is_in_our_thread(self, message: IncomingMessage) -> bool:
        if not needs_thread_lookup(message, self._settings):
            return False
        thread_id = message.thread_id
        if thread_id in self._threads:
            return self._threads[thread_id]
        found = await self._has_conversation(message)
        try:
            if not found:
                async with asyncio.timeout(_LOOKUP_TIMEOUT_SECONDS):
                    found = await self._transport.has_posted_in(thread_id)
        except TransportRejected as error:
            log.info("thread cannot be read", extra={"reason": str(error)})
        except (TransportUnavailable, TimeoutError) as error:
            log.info("thread not read", extra={"reason": str(error)})
            return False  # the next message of the thread asks again
        self._threads[thread_id] = found
        return found

    async def _has_conversation(self, message: IncomingMessage) -> bool:
        """Return True if a thread is a conversation of the bot, or its first message is known."""
        transport, chat = self._transport, self._conversation(message)
        known = await self._gateway.chats.list_known(
            transport.name, transport.app, chat.scope, [message.thread_root_id]
        )
        root = known.messages[message.thread_root_id]
        kind = self._settings.session_scope_in(message.chat_id)
        return (known.has_session and kind == "thread") or root.is_own or root.in_session

    async def _handle(
        self,
        row: InboundMessage,
        message: IncomingMessage,
        accepted: Accepted,
        facts: MessageFacts,
    ) -> None:
        if message.thread_id:
            self._threads[message.thread_id] = True  # there will be a reply
        context = self._context(row, message, accepted, facts)
        match await self._answer(context, accepted.text):
            case None:
                await self._submit(
                    context, accepted.text or without_words(message, context.phrases)
                )
            case Ignored(reason):
                await self._ignore(row, reason)
            case result:
                await self._finish(row, result)

    def _context(
        self,
        row: InboundMessage,
        message: IncomingMessage,
        accepted: Accepted,
        facts: MessageFacts,
    ) -> MessageContext:
        chat = chat_name(row.channel, row.app, row.chat_id)
        return MessageContext(
            Actor(accepted.principal, row.channel, chat),
            msgspec.structs.replace(
                row, thread_id=message.thread_id, attachments=message.attachments
            ),
            self._conversation(message),
            accepted.phrases,
            message,
            facts,
        )

    async def _answer(self, context: MessageContext, text: str) -> CommandResult | Ignored | None:
        """Take a text as a command, as a word that stops, or as an answer; None if it is none."""
        if not text or context.incoming.is_from_bot:  # only a quote or files; commands are people's
            return None
        if (command := parse_command(text)) is not None:
            return await self._commands.handle(command, context)
        if (stopped := await self._commands.stop_by_word(text, context)) is not None:
            return stopped
        if (help_ := self._commands.help_by_word(text, context)) is not None:
            return help_
        return await self._answers.answer(context, text)

    def _conversation(self, message: IncomingMessage) -> ChatRef:
        kind = self._settings.session_scope_in(message.chat_id)
        is_personal = not message.is_direct and kind in {"sender", "thread_sender"}
        scope = conversation_scope(self._transport.name, message, kind)
        return ChatRef(message.chat_id, scope, message.is_direct, is_personal)

    async def _submit(self, context: MessageContext, text: str) -> None:
        context, text, joined = await self._gatherer.gather(context, text)
        prompt = await self._prompts.build(context, text)
        run_id, is_waiting = await self._router.submit(
            context, text, prompt=prompt.text, attachments=prompt.attachments, joined=joined
        )
        if is_waiting:
            self._listener.on_received(context.row.message_id, None)
        for each in joined:
            self._listener.on_received(each.message_id, run_id)
        self._listener.on_run(run_id)

    async def _finish(self, row: InboundMessage, result: CommandResult) -> None:
        if result.stopped:
            await self._gateway.mark_handled(row)
        if result.settled or result.stopped:
            self._listener.on_received(row.message_id, result.run_id)
            self._listener.on_outgoing()
        else:
            await self._reply(row, result.text)
        if result.run_id is not None and not result.stopped:
            self._listener.on_run(result.run_id)

    async def _ignore(self, row: InboundMessage, reason: str) -> None:
        await self._gateway.mark_handled(row)
        log.info("message ignored", extra={"message_id": row.message_id, "reason": reason})

    async def _reply(self, row: InboundMessage, text: str) -> None:
        reply = self._answer_to(row, "note", text)
        await self._gateway.mark_handled(row, [reply] if text else [])
        self._listener.on_outgoing()

    @staticmethod
    def _answer_to(row: InboundMessage, kind: str, text: str) -> OutgoingMessage:
        return OutgoingMessage(
            key=f"{row.app}:{row.message_id}:{kind}",
            channel=row.channel,
            app=row.app,
            chat_id=row.chat_id,
            reply_to=edited_message_id(row.message_id),
            body=text,
        )


def _is_temporary(error: Exception) -> bool:
    """Return True if an attempt failed for a reason that is not in the message."""
    if isinstance(error, TransportUnavailable):
        return not error.isolated
    return isinstance(error, StoreUnavailable | FilesUnavailable)


def _describe(error: Exception) -> str:
    """Return the reason for the owner, with every secret masked."""
    words = str(error) if isinstance(error, LarkspurError) else f"{type(error).__name__}: {error}"
    return truncate_line(mask_secrets(words), MAX_FAILURE_CHARACTERS)
