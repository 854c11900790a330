"""Decide whether a message is processed: rules of the channel, rights of the sender."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec
from cachetools import TTLCache

from internal.agent.app.access import Access
from internal.agent.app.runs.creation import MAX_INSTRUCTION_CHARACTERS
from internal.agent.app.runs.question_recipients import ChatOperators
from internal.agent.app.runs.questions import Actor
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.principals import Principal, Right
from internal.channels.chat.chat_rules import ChatRules, resolve_rules
from internal.channels.chat.command_parser import is_pairing
from internal.channels.chat.transport import ChatTransport, IncomingMessage, TransportRejected
from internal.i18n.chat import ChatPhrases, ChatTexts
from internal.settings.chat import ChatChannelSettings

MAX_NAME_LENGTH = 80
NAME_TIMEOUT_SECONDS = 2.0
_CACHE_SIZE, _NAME_SECONDS, _REFUSED_NAME_SECONDS = 2_048, 3_600.0, 600.0
_MISSING_NAME_SECONDS = 60.0


class Ignored(NamedTuple):
    """The message gets no reply; `reason` is for the log."""

    reason: str


class Reply(NamedTuple):
    """The message gets this text as its reply and starts nothing."""

    text: str


class Accepted(NamedTuple):
    """The message is a command, an answer or a task; without `talk` only a pairing code."""

    text: str
    phrases: ChatPhrases
    principal: Principal


class SenderContext(NamedTuple):
    """Facts that are not in the message.

    `granted` are rights in addition to the lists. `in_our_thread`: the bot has posted in the thread
    of the message.
    """

    principal_id: str
    received: datetime
    granted: frozenset[Right] = frozenset()
    in_our_thread: bool = False


def listed_rights(rules: ChatRules, user_id: str, *, is_external: bool = False) -> frozenset[Right]:
    """Return the rights that the lists of a chat give a user.

    A user of another organization gets rights only from entries with their own id.
    """
    rights: set[Right] = set()
    known = {user_id} if is_external else {user_id, rules.chat_id, "*"}
    if not known.isdisjoint(rules.talk):
        rights.add("talk")
    if not known.isdisjoint(rules.operate):
        rights.add("operate")
    return frozenset(rights)


def listed_operators(
    settings: ChatChannelSettings, is_user: Callable[[str], bool], chat_id: str
) -> ChatOperators:
    """Return the configured operators of a chat, and the ones who receive its questions."""
    operate = resolve_rules(settings, chat_id).operate
    return ChatOperators(
        tuple(filter(is_user, operate)),
        is_everyone=not {"*", chat_id}.isdisjoint(operate),
        wanted=settings.named_recipients,
        only_owners=settings.question_recipients == "owner",
    )


def check_message(
    message: IncomingMessage,
    rules: ChatRules,
    sender: SenderContext,
    *,
    texts: ChatTexts,
) -> Ignored | Reply | Accepted:
    """Return whether a message is processed, answered with a sentence, or ignored."""
    text, reason = message.text, _ignore_reason(message, rules, sender)
    if reason:
        return Ignored(reason)
    phrases = texts.phrases_for(text or message.forwarded)
    listed = listed_rights(rules, message.user_id, is_external=message.is_external)
    rights = sender.granted | listed
    if message.is_from_bot:  # decisions are for people
        rights &= {"talk"}
    principal = Principal(sender.principal_id, roles=rights)
    is_pairing_code = is_pairing(text or "") and message.is_from_person
    if not principal.may("talk") and not is_pairing_code:
        return Reply(phrases("not_allowed"))
    if text is None:
        return Reply(phrases("unknown_type"))
    age = _age(message, sender.received)
    if age > rules.max_age:
        return Reply(phrases("too_late", late=_as_words(age, phrases)))
    if unusable := _describe_length(message, len(text), phrases):
        return Reply(unusable)
    return Accepted(text, phrases, principal)


def _describe_length(message: IncomingMessage, length: int, phrases: ChatPhrases) -> str:
    """Return the reply to an empty or too long message, or "" if its length is valid."""
    if is_empty(message):
        return phrases("only_mention", help=phrases.command("help"))
    if length > MAX_INSTRUCTION_CHARACTERS:
        return phrases("too_long", length=length, most=MAX_INSTRUCTION_CHARACTERS)
    return ""


def needs_thread_lookup(message: IncomingMessage, rules: ChatRules) -> bool:
    """Return True if the decision depends on whether the bot has posted in the thread."""
    return (
        not message.is_direct
        and bool(message.thread_id)
        and rules.group_policy == "thread"
        and not message.is_mention
    )


def is_for_bot(message: IncomingMessage, rules: ChatRules, *, in_our_thread: bool) -> bool:
    """Return True if the bot answers a message, whatever the rights of its sender are."""
    return not _not_for_bot(message, rules, in_our_thread=in_our_thread)


def needs_sender_lookup(message: IncomingMessage, rules: ChatRules) -> bool:
    """Return True if the decision depends on whether the message replies to the bot."""
    return (
        not message.is_direct
        and bool(message.quoted_id)
        and message.is_from_person
        and rules.serves(is_direct=False)
        and not message.is_mention
    )


class ChatUsers:
    """The users of one account: their rights and names."""

    def __init__(
        self, transport: ChatTransport, access: Access, settings: ChatChannelSettings
    ) -> None:
        self.transport, self._access, self._settings = transport, access, settings
        self._names: TTLCache[str, str] = TTLCache(_CACHE_SIZE, _NAME_SECONDS)
        self._missing: TTLCache[str, bool] = TTLCache(_CACHE_SIZE, _MISSING_NAME_SECONDS)
        self._refused: TTLCache[str, bool] = TTLCache(_CACHE_SIZE, _REFUSED_NAME_SECONDS)
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def principal_id(self, user_id: str) -> str:
        """Return the id of a user that is unique over all channels."""
        return f"{self.transport.name}:{self.transport.app}:{user_id}"

    async def granted_rights(self, user_id: str) -> frozenset[Right]:
        """Return the rights of a user in addition to the lists; read from the store every time."""
        return await self._access.get_rights(self.principal_id(user_id))

    async def principal(self, user_id: str, chat_id: str, *, is_external: bool) -> Principal:
        """Return a user with the rights that they have in a chat now."""
        rules = resolve_rules(self._settings, chat_id)
        listed = listed_rights(rules, user_id, is_external=is_external)
        rights = listed | await self.granted_rights(user_id)
        return Principal(self.principal_id(user_id), roles=rights)

    def act_in_chat(self, chat: str, principal: Principal, granted: frozenset[Right]) -> Actor:
        """Return a person outside a chat such as `lark:cli_1:oc_1` as an actor in it.

        The person has the granted rights, and the rights of entries with their own id.
        """
        account = self.principal_id("")
        if not chat.startswith(account):  # of another account only the owner is an operator
            rights = granted & {"owner"}
        else:
            user_id, chat_id = principal.id.removeprefix(account), chat.removeprefix(account)
            rules = resolve_rules(self._settings, chat_id)
            rights = granted | listed_rights(rules, user_id, is_external=True)
        person = msgspec.structs.replace(principal, roles=rights)
        return Actor(person, self.transport.name, chat)

    async def find_names(self, principal_ids: Iterable[str]) -> dict[str, str]:
        """Return the display names, by their principals, that are known within 2 s."""
        found: dict[str, str] = {}
        with suppress(TimeoutError):
            async with asyncio.timeout(NAME_TIMEOUT_SECONDS):
                for each in dict.fromkeys(principal_ids):
                    known = await self.with_known_name(Principal(each))
                    if name := known.name or await self.name_of(each):
                        found[each] = name
        return found

    async def with_known_name(self, principal: Principal) -> Principal:
        """Return a user with the name that is known without asking the service, "" if none is.

        That is a name asked for before, or the one with which the person was paired.
        """
        name = self._names.get(principal.id.removeprefix(self.principal_id("")), "")
        name = name or await self._access.get_name(principal.id)
        return msgspec.structs.replace(principal, name=name)

    async def with_name(self, principal: Principal) -> Principal:
        """Return a user of this account with their display name, "" if it is unknown."""
        name = await self.name(principal.id.removeprefix(self.principal_id("")))
        return msgspec.structs.replace(principal, name=name)

    async def name_of(self, principal_id: str) -> str:
        """Return the display name of a user of this account by their principal, else ""."""
        prefix = self.principal_id("")
        user_id = principal_id.removeprefix(prefix)
        return await self.name(user_id) if user_id and user_id != principal_id else ""

    async def name(self, user_id: str) -> str:
        """Return the display name of a user, "" if it is unknown.

        It takes at most 2 s. A name is kept for an hour, a refusal for ten minutes. The service is
        asked once for all who wait for the same name.
        """
        lock = self._asking.setdefault(user_id, asyncio.Lock())
        async with lock:
            return await self._ask_name(user_id)

    async def _ask_name(self, user_id: str) -> str:
        if user_id in self._names:
            return self._names[user_id]
        if user_id in self._missing or user_id in self._refused:
            return ""
        try:
            async with asyncio.timeout(NAME_TIMEOUT_SECONDS):
                name = await self.transport.display_name(user_id)
        except TransportRejected:  # such as a missing permission
            self._refused[user_id] = True
            return ""
        except (LarkspurError, TimeoutError):  # cosmetic: the id is shown instead
            self._missing[user_id] = True
            return ""
        self._names[user_id] = name = " ".join(name.split())[:MAX_NAME_LENGTH]
        return name


def _ignore_reason(message: IncomingMessage, rules: ChatRules, sender: SenderContext) -> str:
    """Return why a message is ignored, "" if it is not."""
    if reason := _not_for_bot(message, rules, in_our_thread=sender.in_our_thread):
        return reason
    return "it is empty" if is_empty(message) and not message.is_mention else ""


def is_empty(message: IncomingMessage) -> bool:
    """Return True for a message of only a mention: no words, files, quote, forwarded messages."""
    refers = message.quoted_id or message.attachments or message.forwarded or message.is_partial
    return message.text == "" and not refers


def _not_for_bot(message: IncomingMessage, rules: ChatRules, *, in_our_thread: bool) -> str:
    if message.is_from_bot and rules.answer_bots:
        if not message.is_mention:
            return "it is from a bot that does not mention this one"
    elif not message.is_from_person:
        return "it is not from a person"
    if not message.user_id:
        return "its sender is unknown"
    if not rules.serves(is_direct=message.is_direct):
        return "direct chats are off" if message.is_direct else "the bot is off in this group"
    if message.is_direct:
        return ""
    policy = rules.group_policy
    is_followed = policy == "open" or (policy == "thread" and in_our_thread)
    return "" if is_followed or message.is_mention else "the bot is not mentioned"


def _age(message: IncomingMessage, received: datetime) -> timedelta:
    """Return the delivery time of a message; 0 if it would be negative by the clocks."""
    if message.sent_at is None:
        return timedelta()
    return max(timedelta(), received - message.sent_at)


def _as_words(age: timedelta, phrases: ChatPhrases) -> str:
    """Return a duration in days or hours if at least two, otherwise in minutes."""
    minutes = int(age.total_seconds() // 60)
    for key, size in (("late_days", 24 * 60), ("late_hours", 60)):
        if minutes >= 2 * size:
            return phrases(key, count=minutes // size)
    return phrases("late_minutes", count=minutes)
