"""Handle messages: as commands, answers, steering, tasks, or with a short reply."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

import msgspec
from cachetools import TTLCache

from internal.agent.app.chat_delivery import MessageFacts
from internal.agent.app.edited_messages import MessageEdit
from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.finalization import LEFT_CHAT
from internal.agent.app.runs.questions import Actor
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
    MessageRefused,
    ProfileUnusable,
    RunStopped,
    TooManyTasks,
)
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Task, chat_name
from internal.channels.chat.answers import (
    ChatRef,
    CommandResult,
    MessageContext,
    TextAnswers,
)
from internal.channels.chat.background import BackgroundReader, PromptBuilder
from internal.channels.chat.chat_rules import ChatRules, resolve_rules
from internal.channels.chat.command_handlers import CommandHandlers
from internal.channels.chat.command_parser import (
    parse_command,
    read_menu_key,
)
from internal.channels.chat.greetings import build_greeting
from internal.channels.chat.message_burst import MessageGatherer, without_words
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
)
from internal.channels.chat.queued_message import QueuedMessage
from internal.channels.chat.reactions import ReactionFeedback
from internal.channels.chat.task_router import TaskRouter
from internal.channels.chat.transport import (
    ChatOpened,
    ChatTransport,
    EditedMessage,
    IncomingMessage,
    MenuChoice,
    MessageReaction,
    RecalledMessage,
    RemovedFromChat,
    StoredEvent,
    TransportRejected,
    TransportUnavailable,
    recall_id,
)
from internal.i18n.chat import ChatTexts
from internal.settings.chat import ChatChannelSettings, SessionScope

log = logging.getLogger(__name__)

MAX_BOT_TURNS = 10
"""Messages of bots in a row, without one of a person, that are answered in a chat."""
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


class MessageListener(msgspec.Struct, frozen=True):
    """Callbacks of the handler.

    `on_run` gets a run to display, `on_received` a message to confirm with a reaction and the run
    that an answer or a command is about; `on_outgoing` is called when there is something to send.
    """

    on_run: Callable[[RunId], None]
    on_received: Callable[[str, RunId | None], None]
    on_outgoing: Callable[[], None]


class Arrival(NamedTuple):
    """A message to handle: its row, the stored facts about it, and the rules of its chat.

    `waiting` are the messages of its chat that this process has read from the inbox.
    """

    row: InboundMessage
    facts: MessageFacts
    rules: ChatRules
    waiting: Iterable[QueuedMessage]


class MessageHandler:
    """Handles the messages of one account, one of a chat at a time."""

    def __init__(
        self,
        transport: ChatTransport,
        gateway: Gateway,
        people: ChatUsers,
        *,
        settings: ChatChannelSettings,
        defaults: TaskDefaults,
        texts: ChatTexts,
        listener: MessageListener,
        instructions: ChatInstructions,
    ) -> None:
        self._transport, self._gateway, self._people = transport, gateway, people
        self._settings, self._texts, self._listener = settings, texts, listener
        self._answers = TextAnswers(gateway, people)
        self._commands = CommandHandlers(
            gateway,
            people,
            self._answers,
            defaults=defaults,
            instructions=instructions,
        )
        self._background = BackgroundReader(transport, gateway, people)
        self._prompts = PromptBuilder(self._background, people)
        self._router = TaskRouter(gateway, defaults, transport.known_time_zone)
        self._reactions = ReactionFeedback(transport, gateway, people)
        self._direct_chats: TTLCache[tuple[str, str], bool] = TTLCache(_CACHE_SIZE, _THREAD_SECONDS)
        """The direct chats that are stored, by chat and user."""
        self._threads: TTLCache[str, bool] = TTLCache(_CACHE_SIZE, _THREAD_SECONDS)
        """Whether the bot takes part in a thread."""
        self._gatherer = MessageGatherer(
            transport, gateway, texts, gather_ms=settings.gather_ms, threads=self._threads
        )

    def notify(self, chat_id: str = "") -> None:
        """Look at the messages again that wait in a chat, or in all chats."""
        self._gatherer.notify(chat_id)

    async def handle(
        self, message: QueuedMessage, facts: MessageFacts, waiting: Iterable[QueuedMessage]
    ) -> QueuedMessage | None:
        """Process and settle a message.

        `waiting` are the messages of its chat that this process has read from the inbox.

        Returns an edited message that must be processed next, or None.
        """
        row = message.row
        try:
            await message.parse(self._transport)
            rules = resolve_rules(self._settings, row.chat_id, facts.settings)
            return await self._dispatch(message, Arrival(row, facts, rules, waiting))
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
        return None

    async def set_aside(self, message: QueuedMessage, failure: str) -> None:
        """Make a message a dead letter, and inform its sender if it is for the bot."""
        row, reply = message.row, None
        incoming = message.event if isinstance(message.event, IncomingMessage) else None
        text = "" if incoming is None else incoming.text or ""
        if message.event is None or (incoming is not None and self._is_for_bot(incoming)):
            phrases = self._texts.phrases_for(row.raw)
            reply = self._answer_to(row, "failed", phrases("failed_inside"))
        delivery = self._gateway.delivery
        await delivery.set_aside(message.accepted, failure, text=text, reply=reply)
        details = {"message_id": row.message_id, "chat": row.chat_id, "reason": failure}
        log.error("message set aside", extra=details)
        self._listener.on_outgoing()

    def _is_for_bot(self, message: IncomingMessage) -> bool:
        rules = resolve_rules(self._settings, message.chat_id)
        in_our_thread = self._threads.get(message.thread_id, False)
        return is_for_bot(message, rules, in_our_thread=in_our_thread)

    async def _dispatch(self, message: QueuedMessage, arrival: Arrival) -> QueuedMessage | None:
        row = message.row
        match message.event:
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
                return await self._edit(message, message_id, arrival)
            case RemovedFromChat(at):
                await self._leave(row, at)
            case MessageReaction() as reaction:
                await self._ignore(row, await self._reactions.store(row, reaction))
            case ChatOpened() as opened:
                await self._greet(arrival, opened)
            case MenuChoice() as choice:
                await self._choose(arrival, choice)
            case IncomingMessage() as incoming:
                await self._check(arrival, incoming)
        return None

    async def _greet(self, arrival: Arrival, opened: ChatOpened) -> None:
        """Introduce the bot to a chat, once, if it serves the user who opened it or added it."""
        row, is_direct = arrival.row, opened.is_direct
        person = self._people.principal_id(opened.user_id) if is_direct else ""
        if is_direct:
            await self._remember_direct(row.chat_id, opened.user_id)
        is_served = self._settings.greeting and arrival.rules.serves(is_direct=is_direct)
        principal = await self._people.principal(
            opened.user_id, row.chat_id, is_external=opened.is_external
        )
        if not is_served or not principal.may("talk") or opened.is_known:
            await self._ignore(row, "a chat was opened that is not greeted")
            return
        name = opened.name or await self._people.name(opened.user_id)
        greeting = build_greeting(row, self._texts.phrases_for(name), is_direct=is_direct)
        if await self._gateway.delivery.greet(greeting, row, person):
            self._listener.on_outgoing()
        else:
            log.info("chat was greeted before", extra={"chat": row.chat_id})

    async def _choose(self, arrival: Arrival, choice: MenuChoice) -> None:
        """Carry out the command of a menu entry in the direct chat of the user."""
        person, user_id = self._people.principal_id(choice.user_id), choice.user_id
        chats, transport = self._gateway.chats, self._transport
        known = await chats.find_direct(transport.name, transport.app, person)
        row = msgspec.structs.replace(arrival.row, chat_id=known or user_id)
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
        facts = arrival.facts
        if known:
            facts = await self._gateway.delivery.get_facts(row, recall=recall_id(row.message_id))
        rules = resolve_rules(self._settings, row.chat_id, facts.settings)
        await self._check(arrival._replace(row=row, facts=facts, rules=rules), command)

    async def _remember_direct(self, chat_id: str, user_id: str) -> None:
        """Store whose direct chat a chat is: events of the menu name only the user."""
        key = (chat_id, user_id)
        if key not in self._direct_chats:
            transport, person = self._transport, self._people.principal_id(user_id)
            await self._gateway.chats.add_direct(transport.name, transport.app, chat_id, person)
            self._direct_chats[key] = True

    async def _edit(
        self, edit: QueuedMessage, message_id: str, arrival: Arrival
    ) -> QueuedMessage | None:
        """Start a task for an edited message, replace it while it waits, or update its run."""
        row, delivery = edit.row, self._gateway.delivery
        raw, state = await delivery.get_message(row.channel, row.app, message_id)
        if arrival.facts.is_recalled:
            await self._ignore(row, "it was recalled")
            return None
        if state is not None and state.run_id and state.status == "handled":
            await self._ignore(row, "the message was answered before its edit")
            return None
        known = StoredEvent(raw) if raw else None
        try:
            received = await self._transport.read_edited(edit.stored, known)
        except TransportRejected as error:
            await self._ignore(row, f"an edited message cannot be read: {error}")
            return None
        current = msgspec.structs.replace(
            row,
            message_id=message_id,
            principal=self._people.principal_id(received.user_id),
            raw=received.raw,
            sent="" if received.sent_at is None else rfc3339(received.sent_at),
        )
        edited = QueuedMessage(AcceptedMessage(current), received.decoded)
        message = await edited.parse(self._transport)
        before = None if known is None else await self._transport.parse(known)
        before = before if isinstance(before, IncomingMessage) else None
        if not isinstance(message, IncomingMessage) or (
            before is not None and before.user_id != message.user_id
        ):
            await self._ignore(row, "an edit is not of the person who wrote the message")
        elif state is not None and state.run_id:
            await self._change(row, arrival._replace(row=current), message)
        else:
            # one that is accepted and not processed is replaced, whatever it said
            is_processed = state is not None and state.status != "accepted"
            earlier = before if is_processed else None
            why = await self._why_not_started(message, earlier, arrival.rules)
            if not why and await delivery.accept_edited(row, current):
                log.info("edited message accepted", extra={"message_id": message_id})
                return edited
            await self._ignore(row, why or "the edited message was set aside")
        return None

    async def _why_not_started(
        self, message: IncomingMessage, before: IncomingMessage | None, rules: ChatRules
    ) -> str:
        """Return why a message that has no task does not get one by its edit, "" if it does."""
        if before is not None:
            if (before.text, before.is_mention) == (message.text, message.is_mention):
                return "an edit changed nothing that is read"
            if not is_empty(before) and await self._is_addressed(before, rules):
                return "the message was answered before its edit"
        is_addressed = await self._is_addressed(message, rules)
        return "" if is_addressed else "the edited message is not for the bot"

    async def _is_addressed(self, message: IncomingMessage, rules: ChatRules) -> bool:
        message = await self._as_mention(message, rules)
        in_our_thread = await self._is_in_our_thread(message, rules)
        return is_for_bot(message, rules, in_our_thread=in_our_thread)

    async def _as_mention(self, message: IncomingMessage, rules: ChatRules) -> IncomingMessage:
        """Return a message as a mention if it replies to the bot."""
        is_reply = needs_sender_lookup(message, rules)
        if is_reply and await self._background.is_reply_to_bot(message):
            return message._replace(is_mention=True)
        return message

    async def _change(
        self, row: InboundMessage, arrival: Arrival, message: IncomingMessage
    ) -> None:
        """Replace a message that waits for its run, or send the new text to its run.

        `row` is the row of the edit, and `arrival` the edited message.
        """
        facts = await self._gateway.delivery.get_facts(arrival.row)  # its author may be another
        message = message._replace(is_mention=True)  # it was for the bot when its run was created
        sender = SenderContext(
            arrival.row.principal, datetime.fromisoformat(row.received), facts.granted
        )
        match check_message(message, arrival.rules, sender, texts=self._texts):
            case Ignored(reason):
                await self._ignore(row, reason)
            case Reply(text):
                await self._reply(row, text)
            case Accepted() as accepted:
                context = self._context(arrival._replace(facts=facts), message, accepted)
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

    async def _leave(self, row: InboundMessage, at: datetime | None) -> None:
        """Stop tasks and drop waiting messages from before the bot was removed from the chat.

        Later tasks are kept: the bot may have been added again.
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
        match await self._transport.parse(StoredEvent(raw)) if raw else None:
            case IncomingMessage(sent_at=datetime() as sent_at) if at is not None:
                return sent_at > at
            case _:
                return False

    async def _check(self, arrival: Arrival, message: IncomingMessage) -> None:
        row, facts, rules = arrival.row, arrival.facts, arrival.rules
        if facts.is_recalled:
            await self._ignore(row, "it was recalled")
            return
        message = await self._as_mention(message, rules)
        sender = SenderContext(
            principal_id=self._people.principal_id(message.user_id),
            received=datetime.fromisoformat(row.received),
            granted=facts.granted,
            in_our_thread=await self._is_in_our_thread(message, rules),
        )
        if message.is_direct and message.is_from_person and message.chat_id != message.user_id:
            await self._remember_direct(message.chat_id, message.user_id)
        decision = check_message(message, rules, sender, texts=self._texts)
        if message.is_partial and isinstance(decision, Accepted):
            message = await self._transport.complete(message)
            decision = check_message(message, rules, sender, texts=self._texts)
        if rules.answer_bots and not message.is_direct:
            decision = await self._limit_bots(message, decision)
        match decision:
            case Ignored(reason):
                await self._ignore(row, reason)
            case Reply(text):
                await self._reply(row, text)
            case Accepted() as accepted:
                await self._handle(arrival, message, accepted)

    async def _limit_bots(
        self, message: IncomingMessage, checked: Ignored | Reply | Accepted
    ) -> Ignored | Reply | Accepted:
        """Return the decision about a message in a group that other bots may write to.

        After `MAX_BOT_TURNS` messages of bots without one of a person, the next one gets a note and
        further ones are ignored, so that bots do not answer each other forever.
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

    async def _is_in_our_thread(self, message: IncomingMessage, rules: ChatRules) -> bool:
        if not needs_thread_lookup(message, rules):
            return False
        thread_id = message.thread_id
        if thread_id in self._threads:
            return self._threads[thread_id]
        found = await self._has_conversation(message, rules)
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

    async def _has_conversation(self, message: IncomingMessage, rules: ChatRules) -> bool:
        """Return True if a thread is a conversation of the bot, or its first message is known."""
        transport, chat = self._transport, self._conversation(message, rules)
        known = await self._gateway.chats.list_known(
            transport.name, transport.app, chat.scope, [message.thread_root_id]
        )
        root = known.messages[message.thread_root_id]
        is_thread = rules.session_scope == "thread"
        return (known.has_session and is_thread) or root.is_own or root.in_session

    async def _handle(self, arrival: Arrival, message: IncomingMessage, accepted: Accepted) -> None:
        if message.thread_id:
            self._threads[message.thread_id] = True  # there will be a reply
        row, context = arrival.row, self._context(arrival, message, accepted)
        match await self._answer(context, accepted.text):
            case None:
                text = accepted.text or without_words(message, context.phrases)
                await self._submit(context, text, arrival.waiting)
            case Ignored(reason):
                await self._ignore(row, reason)
            case result:
                await self._finish(row, result)

    def _context(
        self, arrival: Arrival, message: IncomingMessage, accepted: Accepted
    ) -> MessageContext:
        row = arrival.row
        chat = chat_name(row.channel, row.app, row.chat_id)
        return MessageContext(
            Actor(accepted.principal, row.channel, chat),
            msgspec.structs.replace(
                row, thread_id=message.thread_id, attachments=message.attachments
            ),
            self._conversation(message, arrival.rules),
            accepted.phrases,
            message,
            arrival.facts,
            arrival.rules,
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

    def _conversation(self, message: IncomingMessage, rules: ChatRules) -> ChatRef:
        kind = rules.session_scope
        is_personal = not message.is_direct and kind in {"sender", "thread_sender"}
        scope = conversation_scope(self._transport.name, message, kind)
        return ChatRef(message.chat_id, scope, message.is_direct, is_personal)

    async def _submit(
        self, context: MessageContext, text: str, waiting: Iterable[QueuedMessage]
    ) -> None:
        context, text, joined = await self._gatherer.gather(context, text, waiting)
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
