"""Gates: what is looked at before anything is spent on a message. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from internal.agent.app.runs.creation import MAX_INSTRUCTION_CHARACTERS
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.principals import Principal, Right
from internal.channels.chat.command_parser import gives_code
from internal.channels.lark.events import LarkMessage, message_text
from internal.i18n.catalog import LanguageSetting
from internal.i18n.chat import ChatPhrases, phrases_for

BusyMode = Literal["steer", "queue", "interrupt"]
GroupPolicy = Literal["mention", "open", "thread", "off"]
Progress = Literal["card", "text", "off"]


@dataclass(frozen=True, slots=True)
class GroupRules:
    """What is different in one group; None is as everywhere."""

    policy: GroupPolicy | None = None
    talk: tuple[str, ...] | None = None
    operate: tuple[str, ...] | None = None
    busy_mode: BusyMode | None = None


_AS_EVERYWHERE = GroupRules()


@dataclass(frozen=True, slots=True)
class ChatRules:
    """How the bot behaves; docs/lark.md explains each under `channels.lark`."""

    busy_mode: BusyMode = "steer"
    allow_direct: bool = True
    allow_groups: bool = True
    group_policy: GroupPolicy = "mention"
    groups: Mapping[str, GroupRules] = field(default_factory=dict)
    run_timeout_seconds: float = 900.0
    react_emoji: str = "Typing"
    progress: Progress = "card"
    max_age_minutes: int = 60
    plan_review: PlanReview = "off"
    question_ttl_minutes: int = 1440
    talk: tuple[str, ...] = ("*",)
    operate: tuple[str, ...] = ()
    language: LanguageSetting = "auto"

    def policy_in(self, chat_id: str) -> GroupPolicy:
        """Return what is answered in a group."""
        return self._group(chat_id).policy or self.group_policy

    def busy_mode_in(self, chat_id: str) -> BusyMode:
        """Return what becomes of a message in a chat whose run is at work."""
        return self._group(chat_id).busy_mode or self.busy_mode

    def rights(self, open_id: str, chat_id: str) -> frozenset[Right]:
        """Return what the lists give a person in a chat; a group's own list stands for ours."""
        group = self._group(chat_id)
        talk = self.talk if group.talk is None else group.talk
        operate = self.operate if group.operate is None else group.operate
        rights: set[Right] = set()
        if _listed(open_id, chat_id, talk):
            rights.add("talk")
        if _listed(open_id, chat_id, operate):
            rights.add("operate")
        return frozenset(rights)

    def _group(self, chat_id: str) -> GroupRules:
        return self.groups.get(chat_id, _AS_EVERYWHERE)


class Ignore(NamedTuple):
    """Nothing is said; the log has why."""

    why: str


class Note(NamedTuple):
    """A sentence is the answer, and no run."""

    text: str


class Pass(NamedTuple):
    """It is a command, an answer or a task of this person; who may not talk only gives a code."""

    text: str
    words: ChatPhrases
    principal: Principal


class Hearing(NamedTuple):
    """What is known besides a message.

    `bot` is our open_id, `ours` says whether its thread has a word of ours, `given` what its sender
    was given besides the lists.
    """

    bot: str
    ours: bool
    received: datetime
    given: frozenset[Right] = frozenset()


def judge(
    message: LarkMessage, rules: ChatRules, app_id: str, hearing: Hearing
) -> Ignore | Note | Pass:
    """Say what is to become of a message."""
    if why := _not_for_us(message, rules, hearing):
        return Ignore(why)
    text = message_text(message, hearing.bot)
    said = phrases_for(rules.language, text or "")
    if text == "":
        return Ignore("it is empty")
    rights = rules.rights(message.open_id, message.chat_id) | hearing.given
    principal = Principal(f"lark:{app_id}:{message.open_id}", roles=rights)
    if not principal.may("talk") and not gives_code(text or ""):
        return Note(said("not_allowed"))
    if text is None:
        return Note(said("unknown_type"))
    return _timely(message, rules, hearing, said) or _short(Pass(text, said, principal))


def _timely(
    message: LarkMessage, rules: ChatRules, hearing: Hearing, said: ChatPhrases
) -> Note | None:
    late = _minutes_late(message, hearing.received)
    return Note(said("too_late", minutes=late)) if late > rules.max_age_minutes else None


def _short(passed: Pass) -> Note | Pass:
    length = len(passed.text)
    if length <= MAX_INSTRUCTION_CHARACTERS:
        return passed
    return Note(passed.words("too_long", length=length, most=MAX_INSTRUCTION_CHARACTERS))


def in_question(message: LarkMessage, rules: ChatRules, bot: str) -> bool:
    """Say whether it matters that we take part in the thread of this message."""
    return (
        not message.direct
        and bool(message.thread_id)
        and rules.policy_in(message.chat_id) == "thread"
        and not message.mentioned(bot)
    )


def _not_for_us(message: LarkMessage, rules: ChatRules, hearing: Hearing) -> str:
    """Return why a message is none of ours, "" when it is."""
    if not message.by_person or message.open_id in {hearing.bot, ""}:
        return "it is from a bot, or from nobody"
    if message.direct:
        return "" if rules.allow_direct else "direct chats are off"
    policy = rules.policy_in(message.chat_id)
    if not rules.allow_groups or policy == "off":
        return "the bot is off in this group"
    if policy == "open" or message.mentioned(hearing.bot) or (policy == "thread" and hearing.ours):
        return ""
    return "the bot is not mentioned"


def _listed(open_id: str, chat_id: str, names: Sequence[str]) -> bool:
    return "*" in names or open_id in names or chat_id in names


def _minutes_late(message: LarkMessage, received: datetime) -> int:
    if message.created is None:
        return 0
    return int((received.timestamp() - message.created / 1000) // 60)
