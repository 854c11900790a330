"""Describe who asks a question and how it was settled: the outcome, who answered, where, when."""

from datetime import UTC, datetime
from typing import Literal, NamedTuple

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import Answer, Question, QuestionRecord
from internal.agent.domain.text import escape_invisible, truncate_line
from internal.i18n.chat import ChatPhrases

OutcomeColor = Literal["green", "red", "blue", "grey"]
MAX_ANSWERER_LENGTH, MAX_CHANNEL_LENGTH, MAX_ASKER_LENGTH = 60, 30, 60
SHORT_ID_LENGTH = 6
_MIN_HOURS, _MIN_DAYS = 2, 2
"""Shorter spans are given in minutes, and in hours."""

_APPROVALS: dict[str, tuple[str, OutcomeColor]] = {
    "once": ("asked_allowed_once", "green"),
    "session": ("asked_allowed_session", "green"),
    "rule": ("asked_allowed_rule", "green"),
}
_PLANS: dict[str, tuple[str, OutcomeColor]] = {
    "approve": ("asked_approved", "green"),
    "edit": ("asked_changed", "blue"),
    "reject": ("asked_rejected", "red"),
    "text": ("asked_sent_back", "blue"),
}
_CLARIFICATIONS: dict[str, tuple[str, OutcomeColor]] = {
    "text": ("asked_answered", "green"),
    "approve": ("asked_agreed", "green"),
    "reject": ("asked_declined", "grey"),
}


_RECOVERIES: dict[str, tuple[str, OutcomeColor]] = {
    "approve": ("asked_retried", "green"),
    "text": ("asked_guided", "blue"),
    "reject": ("asked_given_up", "red"),
}
_BY_KIND = {"plan": _PLANS, "clarify": _CLARIFICATIONS, "recovery": _RECOVERIES}


class QuestionOutcome(NamedTuple):
    """The outcome of a question in a few words, and its color."""

    text: str
    color: OutcomeColor


def describe_outcome(record: QuestionRecord, phrases: ChatPhrases) -> QuestionOutcome:
    """Return the outcome of a question that is not open."""
    answer = record.answer
    if record.status == "expired" or (answer is not None and answer.decision == "expired"):
        return QuestionOutcome(phrases("asked_expired"), "grey")
    if answer is None:
        return QuestionOutcome(phrases("asked_closed"), "grey")
    if answer.withdrawn:
        return QuestionOutcome(withdrawn_by(answerer_name(answer, phrases), phrases), "grey")
    if record.question.kind == "approval":
        return _describe_approval(record, answer, phrases)
    if answer.decision == "approve" and answer.edit is not None:
        return QuestionOutcome(phrases("asked_edited"), "green")
    known = _BY_KIND[record.question.kind]
    key, color = known.get(answer.decision, known["reject"])
    return QuestionOutcome(phrases(key), color)


def short_id(name: str) -> str:
    """Return the end of an id, which is enough to name it in a chat."""
    return name[-SHORT_ID_LENGTH:]


def with_asker(title: str, question: Question, phrases: ChatPhrases) -> str:
    """Return the title of a question, after the subtask that asks it if it is of one."""
    if not question.asked_by:
        return title
    path = truncate_line(escape_invisible(phrases.subtask(question.asked_by)), MAX_ASKER_LENGTH)
    return phrases("subtask_asks", task=path, title=title)


def withdrawn_by(who: str, phrases: ChatPhrases) -> str:
    """Return that a question was withdrawn with the message of its task; `who` is "" if unknown."""
    return phrases("asked_withdrawn_by", who=who) if who else phrases("asked_withdrawn")


def is_allowed(answer: Answer, call_id: str) -> bool:
    """Return True if the answer allows this call."""
    return answer.items.get(call_id, answer.decision == "approve")


def describe_late(record: QuestionRecord, principal_id: str, phrases: ChatPhrases) -> str:
    """Return the response to an answer to a question that is no longer open."""
    answer = record.answer
    if record.status == "closed":
        return phrases("click_closed")
    if answer is None or answer.decision == "expired":
        return phrases("click_expired")
    who = phrases("asked_you") if answer.by == principal_id else answerer_name(answer, phrases)
    outcome = describe_outcome(record, phrases).text
    return phrases("click_late", who=who, via=channel_name(answer, phrases), outcome=outcome)


def answerer_name(answer: Answer, phrases: ChatPhrases) -> str:
    """Return the name of the person who answered."""
    if answer.by == LOCAL_OWNER.id:
        return phrases("asked_owner")
    return truncate_line(answer.name, MAX_ANSWERER_LENGTH) or phrases("asked_somebody")


def channel_name(answer: Answer, phrases: ChatPhrases) -> str:
    """Return the name of the channel that an answer came through."""
    key = f"asked_via_{answer.via}"
    return phrases(key) if key in phrases else truncate_line(answer.via, MAX_CHANNEL_LENGTH)


def format_span(start: str, end: str, phrases: ChatPhrases) -> str:
    """Return the time between two RFC 3339 instants in days, hours or minutes, at least one minute.

    A span holds in every time zone, which the zone of this machine does not. "" if one is invalid.
    """
    seconds = seconds_between(start, end)
    if seconds is None:
        return ""
    minutes = max(1, round(seconds / 60))
    if minutes < _MIN_HOURS * 60:
        return phrases("span_minutes", count=minutes)
    hours = round(minutes / 60)
    if hours < _MIN_DAYS * 24:
        return phrases("span_hours", count=hours)
    return phrases("span_days", count=round(hours / 24))


def format_left(end: str, phrases: ChatPhrases, now: datetime | None = None) -> str:
    """Return the time left until an RFC 3339 instant; "" if it is invalid."""
    return format_span((now or datetime.now(UTC)).isoformat(), end, phrases)


def seconds_between(start: str, end: str) -> int | None:
    """Return the seconds between two RFC 3339 instants; None if one is invalid."""
    try:
        passed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except ValueError:
        return None
    return max(0, round(passed.total_seconds()))


def _describe_approval(
    record: QuestionRecord, answer: Answer, phrases: ChatPhrases
) -> QuestionOutcome:
    calls = record.question.calls
    allowed = sum(is_allowed(answer, call.call_id) for call in calls)
    if not allowed:
        return QuestionOutcome(phrases("asked_refused"), "red")
    if allowed < len(calls):
        some = phrases("asked_allowed_some", yes=allowed, count=len(calls))
        return QuestionOutcome(some, "green")
    key, color = _APPROVALS[answer.grant]
    return QuestionOutcome(phrases(key), color)
