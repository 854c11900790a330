"""Background of a message: the quoted message, and in groups the messages before it.

The background was written by other people: it is marked as data, bounded and escaped. Reading it
takes at most 3 s. A note replaces an unreadable part, and the message is processed.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import NamedTuple

from cachetools import TTLCache

from internal.agent.app.chats import KnownMessages
from internal.agent.app.gateway import Gateway
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.text import escape_delimiters, truncate
from internal.channels.chat.answers import MessageContext
from internal.channels.chat.policy import ChatUsers
from internal.channels.chat.prompts import format_message, speaker_name
from internal.channels.chat.transport import (
    ChatTransport,
    IncomingMessage,
    PastMessage,
    TransportRejected,
)

log = logging.getLogger(__name__)

READ_TIMEOUT_SECONDS, NAMES_TIMEOUT_SECONDS, SENDER_TIMEOUT_SECONDS = 2.0, 0.5, 0.5
MAX_QUOTE_CHARACTERS, MAX_OWN_QUOTE_CHARACTERS = 4_000, 1_000
MAX_BUNDLE_CHARACTERS = 50_000
MAX_LINE_CHARACTERS, MAX_RECENT_CHARACTERS = 1_000, 7_000
FILES_NOT_SHOWN = " (its files are not shown to you; a reply to that message shows them)"
OWN_NAME = "you (the assistant)"  # no name of a person contains parentheses
_MAX_NAMES = 8
_CACHE_SIZE, _MESSAGE_SECONDS, _SENDER_SECONDS, _REFUSED_SECONDS = 2_048, 30.0, 3_600.0, 600.0


class _Recent(NamedTuple):
    """The block of earlier messages and the ids of all that were read.

    `is_continued`: the conversation has taken one of them before.
    """

    block: str = ""
    ids: frozenset[str] = frozenset()
    is_continued: bool = False


class PromptPart(NamedTuple):
    """A prompt or a part of one; `text` is "" if the prompt is only the text of the message."""

    text: str
    attachments: tuple[Attachment, ...] = ()


class PromptBuilder:
    """Builds the prompts for the messages of one account."""

    def __init__(self, reader: "BackgroundReader", people: ChatUsers) -> None:
        self._reader, self._people = reader, people

    async def build(self, message: MessageContext, text: str) -> "PromptPart":
        """Return the prompt for a message with this text, including its background."""
        user_id, is_direct = message.incoming.user_id, message.chat.is_direct
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._reader.read(message))
            naming = None if is_direct else tasks.create_task(self._people.name(user_id))
        blocks = reading.result()
        attachments = list(message.incoming.attachments)
        attachments += (file for block in blocks for file in block.attachments)
        if message.incoming.forwarded:
            blocks.append(PromptPart(_forwarded(message.incoming.forwarded)))
        if naming is not None:
            text = format_message(speaker_name(naming.result(), user_id), text)
        elif not blocks:
            return PromptPart("", tuple(attachments))
        return PromptPart(
            "\n\n".join([*(block.text for block in blocks), text]), tuple(attachments)
        )

    async def build_alone(self, message: MessageContext, text: str) -> "PromptPart":
        """Return the prompt for a message without its background."""
        if message.chat.is_direct:
            return PromptPart("", message.incoming.attachments)
        user_id = message.incoming.user_id
        speaker = speaker_name(await self._people.name(user_id), user_id)
        return PromptPart(format_message(speaker, text), message.incoming.attachments)


class BackgroundReader:
    """Reads the background of the messages of one account."""

    def __init__(self, transport: ChatTransport, gateway: Gateway, people: ChatUsers) -> None:
        self._transport, self._gateway, self._people = transport, gateway, people
        self._messages: TTLCache[str, PastMessage] = TTLCache(_CACHE_SIZE, _MESSAGE_SECONDS)
        self._foreign: TTLCache[str, bool] = TTLCache(_CACHE_SIZE, _SENDER_SECONDS)
        self._roots: TTLCache[tuple[str, str], bool] = TTLCache(_CACHE_SIZE, _SENDER_SECONDS)
        self._refused: TTLCache[str, bool] = TTLCache(_CACHE_SIZE, _REFUSED_SECONDS)

    async def is_reply_to_bot(self, message: IncomingMessage) -> bool:
        """Return True if a message replies to one of the bot's; a foreign one is read once."""
        quoted = message.quoted_id
        if not quoted or quoted in self._foreign:
            return False
        if (await self._find_known("", [quoted])).messages[quoted].is_own:
            return True
        try:
            async with asyncio.timeout(SENDER_TIMEOUT_SECONDS):
                is_own = (await self._read_message(quoted)).is_own
        except TransportRejected:
            is_own = False
        except (LarkspurError, TimeoutError):
            return False  # it is asked again with the next reply
        if not is_own:
            self._foreign[quoted] = True
        return is_own

    async def read(self, message: MessageContext) -> list[PromptPart]:
        """Return the blocks for the prompt of a message, in the order in which they are read."""
        until = asyncio.get_running_loop().time() + READ_TIMEOUT_SECONDS
        async with asyncio.TaskGroup() as tasks:
            recent = tasks.create_task(self._recent(message, until))
            quote = tasks.create_task(self._quote(message.incoming.quoted_id, until))
        read = recent.result()
        root = await self._root(message, read, until)
        return [each for each in (root, PromptPart(read.block), quote.result()) if each.text]

    async def _quote(self, message_id: str, until: float, attributes: str = "") -> PromptPart:
        """Return the block of a quoted message, and its files; `until` is a time of the loop."""
        if not message_id:
            return PromptPart("")
        try:
            async with asyncio.timeout_at(until):
                quoted = await self._read_message(message_id)
        except TransportRejected as error:
            log.info("quoted message not readable", extra={"reason": str(error)})
            return PromptPart(_note("quoted_message", "The quoted message cannot be read."))
        except (LarkspurError, TimeoutError) as error:
            log.info("quoted message not read", extra={"reason": str(error)})
            return PromptPart(
                _note("quoted_message", "The quoted message could not be read in time.")
            )
        if quoted.is_recalled:
            return PromptPart(_note("quoted_message", "The quoted message was recalled."))
        names = await self._names([quoted], until)
        most = MAX_OWN_QUOTE_CHARACTERS if quoted.is_own else MAX_QUOTE_CHARACTERS
        if quoted.is_bundle:
            most = MAX_BUNDLE_CHARACTERS
        sent = "" if quoted.sent_at is None else f' sent="{quoted.sent_at.astimezone():%F %H:%M}"'
        text = escape_delimiters(truncate(quoted.text, most))
        start = f'<quoted_message from="{_author(quoted, names)}"{sent}{attributes}>'
        return PromptPart(f"{start}\n{text}\n</quoted_message>", quoted.attachments)

    async def _root(self, message: MessageContext, read: "_Recent", until: float) -> PromptPart:
        """Return the first message of a thread that its conversation does not know yet."""
        incoming, root = message.incoming, message.incoming.thread_root_id
        given = (message.chat.scope, root)
        if not root or root in read.ids or root in {incoming.message_id, incoming.quoted_id}:
            return PromptPart("")
        has_session, messages = await self._find_known(message.chat.scope, [root])
        known = messages[root]
        is_begun = has_session and (
            read.is_continued
            or given in self._roots
            or message.rules.session_scope in {"thread", "thread_sender"}
        )
        self._roots[given] = True
        if is_begun or known.in_session or (known.is_own and not known.is_answer):
            return PromptPart("")
        return await self._quote(root, until, ' place="first message of this thread"')

    async def _recent(self, message: MessageContext, until: float) -> "_Recent":
        """Return the messages before a message to the bot."""
        incoming, size = message.incoming, message.rules.context_size
        if incoming.is_direct or not incoming.is_mention or not size:
            return _Recent()
        if incoming.chat_id in self._refused:
            return _Recent()
        try:
            async with asyncio.timeout_at(until):
                found = await self._transport.read_recent(incoming, size)
        except TransportRejected as error:
            self._refused[incoming.chat_id] = True
            log.info("recent messages not readable", extra={"reason": str(error)})
            return _Recent()
        except (LarkspurError, TimeoutError) as error:
            log.info("recent messages not read", extra={"reason": str(error)})
            note = "The messages before this one could not be read in time."
            return _Recent(_note("recent_messages", note))
        return await self._select(message, found, until)

    async def _select(
        self, message: MessageContext, found: Sequence[PastMessage], until: float
    ) -> "_Recent":
        """Return the messages that the conversation lacks; of the bot's own only answers.

        A message in the conversation was added together with the messages before it.
        """
        ids = [each.message_id for each in found]
        _, known = await self._find_known(message.chat.scope, ids)
        taken = [
            at
            for at, each in enumerate(found)
            if known[each.message_id].in_session and not each.is_own
        ]
        kept = [
            each
            for each in found[taken[-1] + 1 if taken else 0 :]
            if each.text.strip()
            and each.message_id != message.incoming.quoted_id
            and not known[each.message_id].in_session
            and (known[each.message_id].is_answer or not each.is_own)
        ]
        names = await self._names(kept, until)
        lines = _fitting([_line(each, names) for each in kept])
        block = "\n".join(["<recent_messages>", *lines, "</recent_messages>"]) if lines else ""
        return _Recent(block, frozenset(ids), bool(taken))

    async def _find_known(self, scope: str, ids: Sequence[str]) -> KnownMessages:
        transport = self._transport
        return await self._gateway.chats.list_known(transport.name, transport.app, scope, ids)

    async def _read_message(self, message_id: str) -> PastMessage:
        if message_id not in self._messages:
            self._messages[message_id] = await self._transport.read_message(message_id)
        return self._messages[message_id]

    async def _names(self, messages: Sequence[PastMessage], until: float) -> dict[str, str]:
        """Return the names of the senders; of many unknown ones only some are looked up."""
        now = asyncio.get_running_loop().time()
        names = {each.user_id: each.name for each in messages if each.user_id and each.name}
        missing = dict.fromkeys(each.user_id for each in messages if each.user_id)
        wanted = [each for each in missing if each not in names][:_MAX_NAMES]

        async def look_up(user_id: str) -> None:
            names[user_id] = await self._people.name(user_id)

        with contextlib.suppress(TimeoutError):  # the others get a label
            deadline = min(now, until) + NAMES_TIMEOUT_SECONDS
            async with asyncio.timeout_at(deadline), asyncio.TaskGroup() as tasks:
                for user_id in wanted:
                    tasks.create_task(look_up(user_id))
        return names


def _forwarded(text: str) -> str:
    """Return the prompt block with the forwarded messages."""
    shown = escape_delimiters(truncate(text, MAX_BUNDLE_CHARACTERS))
    return f"<forwarded_messages>\n{shown}\n</forwarded_messages>"


def _author(message: PastMessage, names: dict[str, str]) -> str:
    if message.is_own:
        return OWN_NAME
    if not message.user_id:
        return f"{speaker_name(message.name, 'bot')} (a bot)" if message.name else "(a bot)"
    return speaker_name(names.get(message.user_id, ""), message.user_id)


def _line(message: PastMessage, names: dict[str, str]) -> str:
    """Return `[HH:MM] name: text`; of several lines a block, so that none looks like another."""
    text = escape_delimiters(truncate(message.text, MAX_LINE_CHARACTERS))
    time = "" if message.sent_at is None else f"{message.sent_at.astimezone():%H:%M}"
    author, files = _author(message, names), FILES_NOT_SHOWN if message.attachments else ""
    if len(text.splitlines()) > 1:
        sent = f' sent="{time}"' if time else ""
        return f'<earlier_message from="{author}"{sent}>\n{text}{files}\n</earlier_message>'
    at = f"[{time}] " if time else ""
    return f"{at}{author}: {text.strip()}{files}"


def _fitting(lines: Sequence[str]) -> list[str]:
    """Return the last lines that fit."""
    available, kept = MAX_RECENT_CHARACTERS, list[str]()
    for line in reversed(lines):
        available -= len(line)
        if available < 0:
            break
        kept.append(line)
    return kept[::-1]


def _note(block: str, sentence: str) -> str:
    return f"<{block}>\n({sentence})\n</{block}>"
