"""Settings that every chat channel has."""

import zlib
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator

from internal.agent.domain.plans import PlanReview
from internal.settings.types import Count, Names, Network, Seconds, Section, Text, key

BusyMode = Literal["steer", "queue", "interrupt"]
MAX_QUESTION_RECIPIENTS = 5
_RECIPIENT_WORDS = frozenset({"operators", "owner", "off"})
SessionScope = Literal["chat", "thread", "sender", "thread_sender"]


class ChatAccess(Section):
    """Who may talk and who may operate in this channel: user ids, chat ids, or * for everyone."""

    talk: tuple[Text, ...] = key(
        ("*",), "Who may submit tasks; * is everyone of the own organization who can see the app."
    )
    operate: tuple[Text, ...] = key(
        (), "Who may answer questions, and steer and stop runs of others, besides paired operators."
    )


class ChatGroup(Section):
    """Settings of one group; unset ones are inherited. `off`: the bot is silent there."""

    policy: Literal["mention", "open", "thread", "off"] | None = None
    talk: tuple[Text, ...] | None = None
    operate: tuple[Text, ...] | None = None
    auto_chat_context: bool | None = None
    busy_mode: BusyMode | None = None
    session_scope: SessionScope | None = None
    network: Network | None = None
    profile: Text | None = None


_NO_OVERRIDES = ChatGroup()


class ChatChannelSettings(Section):
    """The behaviour of a chat channel; docs/lark.md explains each key."""

    busy_mode: BusyMode = key(
        "steer",
        "A message during a run: steer adds it to the run, queue makes it the next task,"
        " interrupt stops the run.",
    )
    session_scope: SessionScope = key(
        "thread",
        "What a conversation is: chat, thread (each topic and thread, and the rest of the chat),"
        " sender (each person of a chat), or thread_sender.",
    )
    allow_direct: bool = key(True, "Whether the bot answers in direct chats.")
    allow_groups: bool = key(True, "Whether the bot answers in groups.")
    group_policy: Literal["mention", "open", "thread"] = key(
        "mention",
        "In groups: mention answers when mentioned, open answers every message, thread"
        " answers every message in threads that it takes part in.",
    )
    groups: Mapping[Text, ChatGroup] = key(
        {},
        "{chat_id: {policy, talk, operate, auto_chat_context, busy_mode, session_scope, network,"
        " profile}} of single groups; policy may also be off.",
    )
    greeting: bool = key(
        True, "Whether the bot introduces itself once when it is added to a group or first opened."
    )
    answer_bots: bool = key(
        False,
        "Whether messages of other bots that mention this one are answered, ten in a row without a"
        " person at most; the app needs permissions to receive them.",
    )
    gather_ms: Annotated[int, Field(ge=0, le=30_000)] = key(
        0,
        "Milliseconds within which further messages of the same person become one task with the"
        " first; 0 for none.",
    )
    run_timeout_seconds: Seconds = key(900.0, "Timeout of a run from this channel, in seconds.")
    react_emoji: Names = key(
        "Typing",
        "Reaction on a message while its run is in progress; with several names, each message gets"
        " one of them; off for none.",
    )
    progress: Literal["card", "text", "off"] = key(
        "card", "How a run in progress is shown: card, text or off."
    )
    auto_chat_context: bool = key(
        True,
        "Whether a message to the bot in a group comes with the latest messages before it; the app"
        " needs the permission for all messages of groups.",
    )
    auto_chat_context_size: Annotated[Count, Field(le=50)] = key(
        20, "How many messages that are, 1 to 50."
    )
    max_age_minutes: Count = key(
        60, "Minutes after which a delayed message gets an apology instead of a run."
    )
    catch_up: bool = key(
        True,
        "Whether messages that the service did not deliver are taken from the history of their"
        " chats. Turn it off if gateways with different databases share an app.",
    )
    plan_review: PlanReview | None = key(
        None, "As agent.plan_review, for runs from this channel; unset: inherited."
    )
    question_ttl_minutes: Annotated[Count, Field(le=525_600)] | None = key(
        None, "As agent.question_ttl_minutes, for questions from this channel; unset: inherited."
    )
    question_recipients: Names = key(
        "operators",
        "Who gets a copy of an approval that nobody in its chat may answer: operators (of the chat,"
        " else the owner), owner, off, or the ids of at most five people of these.",
    )
    urgent_after_minutes: Annotated[Count, Field(le=525_600)] | None = key(
        None,
        "Minutes after which the people who may answer an open approval are alerted to it, once, by"
        " an urgent message; unset: never. The app needs the permission im:message.urgent.",
    )
    network: Network | None = key(
        None, "As sandbox.network, for runs from this channel; unset: inherited."
    )
    profile: Text | None = key(
        None, "As agent.profile, for runs from this channel; unset: inherited."
    )
    access: ChatAccess = ChatAccess()

    @field_validator("question_recipients")
    @classmethod
    def _has_few_recipients(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if not isinstance(value, str) and not _RECIPIENT_WORDS.isdisjoint(value):
            raise ValueError("must be operators, owner or off alone, or ids of people")
        if not isinstance(value, str) and len(value) > MAX_QUESTION_RECIPIENTS:
            raise ValueError(f"must name at most {MAX_QUESTION_RECIPIENTS} people")
        return value

    def working_emoji(self, message_id: str) -> str:
        """Return the reaction on a message during its run, always the same one; "" if off."""
        names = self.react_emoji
        names = (names,) if isinstance(names, str) else names
        return "" if names == ("off",) else names[zlib.crc32(message_id.encode()) % len(names)]

    @property
    def named_recipients(self) -> tuple[str, ...] | None:
        """The ids of the people that may get copies of questions; None if there is no list."""
        names = self.question_recipients
        if isinstance(names, str):
            return None if names in {"operators", "owner"} else () if names == "off" else (names,)
        return names

    def group(self, chat_id: str) -> ChatGroup:
        """Return the overrides of a group."""
        return self.groups.get(chat_id, _NO_OVERRIDES)
