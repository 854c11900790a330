"""Bursts: several messages of one person within a moment, gathered into one task."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.creation import MAX_INSTRUCTION_CHARACTERS, message_content
from internal.agent.domain.chats import InboundMessage
from internal.channels.chat.answers import MessageContext, is_answer_word
from internal.channels.chat.command_parser import is_help_word, is_stop_word, parse_command
from internal.channels.chat.policy import Ignored, Reply, SenderContext, check_message
from internal.channels.chat.queued_message import QueuedMessage
from internal.channels.chat.transport import (
    ChatTransport,
    IncomingMessage,
    TransportUnavailable,
    recall_id,
)
from internal.i18n.chat import ChatPhrases, ChatTexts

log = logging.getLogger(__name__)

_WORDS = (is_stop_word, is_help_word, is_answer_word)
"""Texts that are more than words for the model."""
_MAX_LATER = 1_000
"""Messages of a chat that are looked at after the first one."""
MAX_MESSAGES = 20
"""Messages in a burst."""


class BurstMessage(NamedTuple):
    """A message that may belong to a burst: its row and its content."""

    row: InboundMessage
    incoming: IncomingMessage


class BurstEnd(NamedTuple):
    """A message that ends a burst at once, such as a command: it must not wait for it."""


BurstItem = BurstMessage | BurstEnd | None
"""A later message of the chat as a burst sees it; None if the burst ignores the message."""
ReadLater = Callable[[], Awaitable[Sequence[BurstItem]]]
"""Returns the later messages of the chat that wait to be processed, oldest first."""


class BurstCollector:
    """Waits for the further messages of bursts. They stay in the inbox meanwhile.

    `seconds_since` returns how long ago a time (RFC 3339) was.
    """

    def __init__(self, seconds_since: Callable[[str], float], gather_ms: int) -> None:
        self._seconds_since, self._moment = seconds_since, gather_ms / 1000
        self._arrived: dict[str, asyncio.Event] = {}

    def notify(self, chat_id: str = "") -> None:
        """Look at the waiting messages of a chat, or of all chats, again."""
        for name, event in self._arrived.items():
            if chat_id in {"", name}:
                event.set()

    async def collect(self, first: InboundMessage, read_later: ReadLater) -> list[BurstMessage]:
        """Return the messages that follow a first one within the moment.

        A message belongs to the burst if it was received within the moment after the one before it.
        The wait ends with the moment, with `MAX_MESSAGES` messages, or with a message that must not
        wait.
        """
        if not self._moment:
            return []
        arrived = self._arrived.setdefault(first.chat_id, asyncio.Event())
        try:
            while True:
                arrived.clear()
                found, is_over = self._take(first, await read_later())
                last = found[-1].row if found else first
                # after the clock was set back the end is far away
                wait = min(self._moment - self._seconds_since(last.received), self._moment)
                if is_over or wait <= 0:
                    return found
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await arrived.wait()
        finally:
            del self._arrived[first.chat_id]

    def _take(
        self, first: InboundMessage, later: Sequence[BurstItem]
    ) -> tuple[list[BurstMessage], bool]:
        """Return the messages of a burst so far, and whether no more can follow."""
        found: list[BurstMessage] = []
        last = first
        for each in later:
            match each:
                case BurstEnd():
                    return found, True
                case BurstMessage(row) if _seconds_between(last, row) <= self._moment:
                    found.append(each)
                    last = row
                    if len(found) + 1 >= MAX_MESSAGES:
                        return found, True
                case BurstMessage():
                    return found, True
                case None:
                    pass
        return found, False


def _seconds_between(first: InboundMessage, second: InboundMessage) -> float:
    between = datetime.fromisoformat(second.received) - datetime.fromisoformat(first.received)
    return between.total_seconds()


class MessageGatherer:
    """Combines messages that become tasks. `threads` are the threads that the bot takes part in."""

    def __init__(
        self,
        transport: ChatTransport,
        gateway: Gateway,
        texts: ChatTexts,
        *,
        gather_ms: int,
        threads: Mapping[str, bool],
    ) -> None:
        self._transport, self._gateway = transport, gateway
        self._texts, self._threads = texts, threads
        self._bursts = BurstCollector(gateway.delivery.seconds_since, gather_ms)

    def notify(self, chat_id: str = "") -> None:
        """Look at the waiting messages of a chat, or of all chats, again."""
        self._bursts.notify(chat_id)

    async def gather(
        self, context: MessageContext, text: str, waiting: Iterable[QueuedMessage]
    ) -> tuple[MessageContext, str, tuple[InboundMessage, ...]]:
        """Return a message with the further ones of its burst, and their rows.

        `waiting` are the messages of the chat that this process has read of the inbox.
        """
        # a message that follows an open question may be its answer
        if context.facts.questions or context.incoming.is_from_bot or _is_lone(text):
            return context, text, ()
        read_later = partial(self._read_later, context, waiting)
        found = await self._bursts.collect(context.row, read_later)
        texts, incoming = [text], context.incoming
        joined: list[InboundMessage] = []
        for each in found:
            if (event := await self._complete_later(each.incoming)) is None:
                break
            words = event.text or without_words(event, context.phrases)
            if sum(map(len, texts)) + len(texts) + len(words) > MAX_INSTRUCTION_CHARACTERS:
                break
            texts.append(words)
            joined.append(msgspec.structs.replace(each.row, raw=message_content(words)))
            incoming = incoming._replace(
                attachments=(*incoming.attachments, *event.attachments),
                forwarded="\n".join(filter(None, (incoming.forwarded, event.forwarded))),
            )
        if not joined:
            return context, text, ()
        row = msgspec.structs.replace(context.row, attachments=incoming.attachments)
        text = "\n".join(each for each in texts if each)
        return context._replace(row=row, incoming=incoming), text, tuple(joined)

    async def _complete_later(self, message: IncomingMessage) -> IncomingMessage | None:
        """Return a message of a burst with all of it; None if that cannot be read.

        Then it is a message of its own, so that its failures do not count against the first one.
        """
        if message.is_partial:
            try:
                message = await self._transport.complete(message)
            except TransportUnavailable as error:
                log.info("message not gathered", extra={"reason": str(error)})
                return None
        return None if message.text is None else message

    async def _read_later(
        self, context: MessageContext, waiting: Iterable[QueuedMessage]
    ) -> list[BurstItem]:
        """Return the messages that wait in the chat behind one that becomes a task."""
        row = context.row
        accepted = await self._gateway.delivery.list_accepted_in(
            row.channel, row.app, row.chat_id, _MAX_LATER
        )
        ids = [each.message.message_id for each in accepted]
        start = ids.index(row.message_id) + 1 if row.message_id in ids else len(ids)
        known = {each.row.message_id: each for each in waiting}
        later = [
            known.get(each.message.message_id) or QueuedMessage(each) for each in accepted[start:]
        ]
        return [await self._as_burst_item(each, context) for each in later]

    async def _as_burst_item(self, message: QueuedMessage, context: MessageContext) -> BurstItem:
        """Return a message of the burst, its end, or None if the message stands alone.

        Commands, answers and chat events end a burst: they are never combined.
        """
        row, first = message.row, context.incoming
        event = await message.parse(self._transport)
        if not isinstance(event, IncomingMessage):
            return BurstEnd()
        text = event.text or ""
        if parse_command(text) is not None or _is_lone(text):
            return BurstEnd()
        if (event.user_id, event.thread_id) != (first.user_id, first.thread_id):
            return None
        facts = await self._gateway.delivery.get_facts(row, recall=recall_id(row.message_id))
        sender = SenderContext(
            principal_id=row.principal,
            received=datetime.fromisoformat(row.received),
            granted=facts.granted,
            in_our_thread=self._threads.get(event.thread_id, False),
        )
        checked = check_message(event, context.rules, sender, texts=self._texts)
        if facts.is_recalled or isinstance(checked, Ignored):
            return None
        if facts.questions or event.quoted_id or isinstance(checked, Reply):
            return BurstEnd()
        row = msgspec.structs.replace(row, thread_id=event.thread_id, attachments=event.attachments)
        return BurstMessage(row, event)


def _is_lone(text: str) -> bool:
    """Return True for a word that is never gathered: to stop, for help, for an answer."""
    return any(is_(text) for is_ in _WORDS)


def without_words(message: IncomingMessage, phrases: ChatPhrases) -> str:
    """Return a replacement for the text of a message that only quotes, forwards or has files."""
    if message.forwarded:
        return phrases("only_forwarded")
    names = ", ".join(each.name for each in message.attachments)
    return phrases("only_files", names=names) if names else phrases("only_quote")
