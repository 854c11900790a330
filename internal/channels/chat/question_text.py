"""Outcomes: what became of a question, who decided it, and how that is said. Pure."""

import re
from datetime import datetime
from typing import Literal, NamedTuple

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import Answer, QuestionRecord
from internal.agent.domain.text import truncate_line
from internal.i18n.chat import ChatPhrases

Colour = Literal["green", "red", "blue", "grey"]
_OPEN_ID = re.compile(r"ou_[A-Za-z0-9_-]{1,80}")
_CALLS: dict[str, tuple[str, Colour]] = {
    "once": ("asked_allowed_once", "green"),
    "session": ("asked_allowed_session", "green"),
    "rule": ("asked_allowed_rule", "green"),
}
_PLAN: dict[str, tuple[str, Colour]] = {
    "approve": ("asked_approved", "green"),
    "edit": ("asked_changed", "blue"),
    "reject": ("asked_rejected", "red"),
    "text": ("asked_sent_back", "blue"),
}
_WORDS: dict[str, tuple[str, Colour]] = {
    "text": ("asked_answered", "green"),
    "approve": ("asked_agreed", "green"),
    "reject": ("asked_declined", "grey"),
}


class Outcome(NamedTuple):
    """What became of a question, in a word or two, and the colour of that."""

    said: str
    colour: Colour


def outcome(asked: QuestionRecord, words: ChatPhrases) -> Outcome:
    """Return what became of a question that is not open any more."""
    answer = asked.answer
    if asked.status == "expired" or (answer is not None and answer.decision == "expired"):
        return Outcome(words("asked_expired"), "grey")
    if answer is None:
        return Outcome(words("asked_closed"), "grey")
    if asked.question.kind == "approval":
        return _on_calls(asked, answer, words)
    if answer.decision == "approve" and answer.edit is not None:
        return Outcome(words("asked_edited"), "green")
    known = _PLAN if asked.question.kind == "plan" else _WORDS
    phrase, colour = known.get(answer.decision, known["reject"])
    return Outcome(words(phrase), colour)


def allowed(answer: Answer, call_id: str) -> bool:
    """Say whether a person agreed to this call."""
    return answer.items.get(call_id, answer.decision == "approve")


def by_whom(answer: Answer, app_id: str, words: ChatPhrases) -> str:
    """Return who answered, through what and when; a person of this app's Lark as a mention."""
    open_id = answer.by.removeprefix(f"lark:{app_id}:")
    who = f"<at id={open_id}></at>" if _OPEN_ID.fullmatch(open_id) else _safe(named(answer, words))
    return words("asked_by", who=who, via=_via(answer, words), when=moment(answer.at))


def late(asked: QuestionRecord, clicker: str, words: ChatPhrases) -> str:
    """Return what is said to somebody who answers a question that is not open any more."""
    answer = asked.answer
    if asked.status == "closed":
        return words("click_closed")
    if answer is None or answer.decision == "expired":
        return words("click_expired")
    who = words("asked_you") if answer.by == clicker else named(answer, words)
    said = outcome(asked, words).said
    return words("click_late", who=who, via=_via(answer, words), outcome=said)


def named(answer: Answer, words: ChatPhrases) -> str:
    """Return who answered, where a mention would mean nothing."""
    if answer.by == LOCAL_OWNER.id:
        return words("asked_owner")
    return truncate_line(answer.name, 60) or words("asked_somebody")


def moment(instant: str) -> str:
    """Return an instant (RFC 3339) as people here read it; "" for none."""
    try:
        return f"{datetime.fromisoformat(instant).astimezone():%Y-%m-%d %H:%M %Z}"
    except ValueError:
        return ""


def _on_calls(asked: QuestionRecord, answer: Answer, words: ChatPhrases) -> Outcome:
    calls = asked.question.calls
    yes = sum(allowed(answer, call.call_id) for call in calls)
    if not yes:
        return Outcome(words("asked_refused"), "red")
    if yes < len(calls):
        return Outcome(words("asked_allowed_some", yes=yes, count=len(calls)), "green")
    phrase, colour = _CALLS[answer.grant]
    return Outcome(words(phrase), colour)


def _via(answer: Answer, words: ChatPhrases) -> str:
    known = {"lark": "asked_via_lark", "web": "asked_via_web", "cli": "asked_via_cli"}
    return words(known[answer.via]) if answer.via in known else truncate_line(answer.via, 30)


def _safe(name: str) -> str:
    """Return a name that is nothing but text in Markdown."""
    return re.sub(r"[^\w .@-]", "", name)
