"""Gates: what is looked at before anything is spent on a message. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from internal.agent.app.intake import LONGEST_INSTRUCTION
from internal.agent.domain.principals import Principal, Right
from internal.channels.lark.messages import Message, words
from internal.channels.lark.words import Choice, Words, words_for

BusyMode = Literal["steer", "queue"]
Progress = Literal["card", "text", "off"]


@dataclass(frozen=True, slots=True)
class LarkRules:
    """How the bot behaves; docs/lark.md explains each under `channels.lark`."""

    busy_mode: BusyMode = "steer"
    allow_direct: bool = True
    allow_groups: bool = True
    group_policy: Literal["mention", "open"] = "mention"
    run_timeout_seconds: float = 900.0
    react_emoji: str = "Typing"
    progress: Progress = "card"
    max_age_minutes: int = 60
    talk: tuple[str, ...] = ("*",)
    operate: tuple[str, ...] = ()
    language: Choice = "auto"


class Ignore(NamedTuple):
    """Nothing is said; the log has why."""

    why: str


class Note(NamedTuple):
    """A sentence is the answer, and no run."""

    text: str


class Pass(NamedTuple):
    """It is a command or a task."""

    text: str
    words: Words
    principal: Principal


def judge(
    message: Message, rules: LarkRules, app_id: str, bot: str, received: datetime
) -> Ignore | Note | Pass:
    """Say what is to become of a message that arrived at `received`. `bot` is our open_id."""
    if why := _not_for_us(message, rules, bot):
        return Ignore(why)
    text = words(message, bot)
    said = words_for(rules.language, text or "")
    if text == "":
        return Ignore("it is empty")
    principal = principal_of(message, rules, app_id)
    if not principal.may("talk") or text is None:
        return Note(said("unknown_type" if principal.may("talk") else "not_allowed"))
    if (late := _minutes_late(message, received)) > rules.max_age_minutes:
        return Note(said("too_late", minutes=late))
    if len(text) > LONGEST_INSTRUCTION:
        return Note(said("too_long", length=len(text), most=LONGEST_INSTRUCTION))
    return Pass(text, said, principal)


def principal_of(message: Message, rules: LarkRules, app_id: str) -> Principal:
    """Return the person behind a message, with the rights of the lists."""
    rights: set[Right] = set()
    if _listed(message, rules.talk):
        rights.add("talk")
    if _listed(message, rules.operate):
        rights.add("operate")
    return Principal(f"lark:{app_id}:{message.open_id}", roles=frozenset(rights))


def _not_for_us(message: Message, rules: LarkRules, bot: str) -> str:
    """Return why a message is none of ours, "" when it is."""
    if not message.by_person or message.open_id in {bot, ""}:
        return "it is from a bot, or from nobody"
    if message.direct:
        return "" if rules.allow_direct else "direct chats are off"
    if not rules.allow_groups:
        return "groups are off"
    if rules.group_policy == "mention" and not message.mentioned(bot):
        return "the bot is not mentioned"
    return ""


def _listed(message: Message, names: Sequence[str]) -> bool:
    return "*" in names or message.open_id in names or message.chat_id in names


def _minutes_late(message: Message, received: datetime) -> int:
    if message.created is None:
        return 0
    return int((received.timestamp() - message.created / 1000) // 60)
