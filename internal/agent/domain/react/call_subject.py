"""A call in a few words, for the title of the question whether it may run."""

from internal.agent.domain.messages import ToolCall
from internal.agent.domain.permissions.targets import (
    CodeTarget,
    CommandTarget,
    NetworkTarget,
    OutsidePathTarget,
    PathTarget,
    Target,
    UrlTarget,
)
from internal.agent.domain.questions import Action
from internal.agent.domain.text import escape_invisible, truncate_line
from internal.agent.domain.tools import ToolSpec
from internal.normal_forms.urls import split_url

MAX_SUBJECT_CHARS = 80


def call_subject(call: ToolCall, spec: ToolSpec) -> tuple[Action, str]:
    """Return the action and the subject of a call, on one line; hidden characters are escaped."""
    if spec.trusts and (words := _words(call.arguments.get(spec.trusts))):
        return "trust", escape_invisible(truncate_line(words[0], MAX_SUBJECT_CHARS))
    for target in spec.targets:
        words = _words(call.arguments.get(target.argument))
        if words:
            shown = escape_invisible(truncate_line(_subject(target, words), MAX_SUBJECT_CHARS))
            return _action(target, spec), shown
    return "use", spec.server_title or call.name


def _words(value: object) -> list[str]:
    given = value if isinstance(value, list) else [value]
    return [one[: 4 * MAX_SUBJECT_CHARS] for one in given if isinstance(one, str) and one.strip()]


def _subject(target: Target, words: list[str]) -> str:
    if not isinstance(target, UrlTarget):
        return ", ".join(words[:10])
    try:
        return split_url(words[0]).hostname or words[0]
    except ValueError:
        return words[0]


def _action(target: Target, spec: ToolSpec) -> Action:
    match target:
        case CommandTarget() | CodeTarget() | NetworkTarget() | OutsidePathTarget():
            return "run"
        case UrlTarget():
            return "fetch"
        case PathTarget():
            return "read" if spec.risk in {"read", "net", "ui"} else "change"
