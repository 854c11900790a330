"""Text for messages that are neither text nor files: places, polls, tasks, ….

Each becomes one line in brackets with the details from Lark, which may be only its kind. A task
and a poll have further lines.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from internal.agent.domain.text import truncate, truncate_line
from internal.channels.lark.api import as_datetime, read_milliseconds

MAX_FIELD_CHARACTERS, MAX_BODY_CHARACTERS, MAX_OPTIONS = 500, 10_000, 50

_DEGREES = re.compile(r"-?\d{1,3}(\.\d{1,20})?")
_PLACEHOLDER = re.compile(r"\{(\w{1,40})\}")

Content = Mapping[str, Any]


def item_text(kind: str, content: Content) -> str | None:
    """Return the text of a message that is an item, or None if it is of another kind."""
    read = _KINDS.get(kind)
    return None if read is None else read(content)


def group_card(name: str) -> str:
    """Return the text of a shared group; its name may be unknown."""
    return _bracketed("group card", name)


def contact_card(name: str) -> str:
    """Return the text of a shared contact; its name may be unknown."""
    return _bracketed("contact card", name)


def _bracketed(kind: str, *details: str) -> str:
    known = ", ".join(each for each in details if each)
    article = "an" if kind[0] in "aeiou" else "a"
    return f"[{kind}: {known}]" if known else f"[{article} {kind}]"


def _line(value: object) -> str:
    """Return a field as one line; "" if it is no text and no number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return truncate_line(str(value)[: 4 * MAX_FIELD_CHARACTERS], MAX_FIELD_CHARACTERS)


def _first(content: Content, *names: str) -> str:
    return next((found for name in names if (found := _line(content.get(name)))), "")


def _time(value: object) -> str:
    """Return a time in milliseconds since 1970 as local time, "" if it is implausible."""
    at = as_datetime(read_milliseconds(_line(value)))
    return "" if at is None else f"{at.astimezone():%F %H:%M}"


def _location(content: Content) -> str:
    degrees = [_line(content.get(name)) for name in ("latitude", "longitude")]
    position = f"({degrees[0]}, {degrees[1]})" if all(map(_DEGREES.fullmatch, degrees)) else ""
    return _bracketed("place", " ".join(filter(None, [_line(content.get("name")), position])))


def _event(content: Content) -> str:
    start, end = _time(content.get("start_time")), _time(content.get("end_time"))
    organizer = _first(content, "organizer_display_name", "organizer")
    return _bracketed(
        "calendar event",
        _first(content, "summary", "title"),
        f"{start} to {end}" if start and end else start,
        f"organized by {organizer}" if organizer else "",
    )


def _meeting(content: Content) -> str:
    number, start = _line(content.get("meet_number")), _time(content.get("start_time"))
    return _bracketed(
        "video meeting",
        _line(content.get("topic")),
        f"started {start}" if start else "",
        f"meeting number {number}" if number else "",
    )


def _task(content: Content) -> str:
    summary, due = content.get("summary"), _time(content.get("due_time"))
    fields: Content = summary if isinstance(summary, dict) else {"title": summary}
    body = truncate(_plain_text(fields.get("content")), MAX_BODY_CHARACTERS)
    title = _line(fields.get("title"))
    if not title:
        title, _, body = body.partition("\n")
    heading = _bracketed("task", title, f"due {due}" if due else "")
    return f"{heading}\n{body}".rstrip()


def _plain_text(rows: object) -> str:
    """Return the text of a rich text without its marks."""
    lines = (
        "".join(
            part["text"]
            for part in row
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, list)
    )
    return "\n".join(line for line in lines if line.strip()).strip()


def _poll(content: Content) -> str:
    listed = content.get("options")
    options = listed if isinstance(listed, list) else []
    shown = [f"- {option}" for each in options[:MAX_OPTIONS] if (option := _option(each))]
    if left_out := len(options[MAX_OPTIONS:]):
        shown.append(f"… {left_out} more options, not shown")
    return "\n".join([_bracketed("poll", _line(content.get("topic"))), *shown])


def _option(value: object) -> str:
    return _first(value, "text", "name", "content") if isinstance(value, dict) else _line(value)


def _system(content: Content) -> str:
    """Return a notice of Lark, whose template names fields of the content."""
    divider = content.get("divider_text")
    shown = {**content, "divider_text": divider.get("text") if isinstance(divider, dict) else ""}
    template = content.get("template")
    filled = _PLACEHOLDER.sub(
        lambda found: _names(shown.get(found[1])), template if isinstance(template, str) else ""
    )
    return _bracketed("system message", _line(filled))


def _names(value: object) -> str:
    if not isinstance(value, list):
        return _line(value)
    named: Sequence[str] = [
        _first(each, "name", "open_id", "id") if isinstance(each, dict) else _line(each)
        for each in value[:MAX_OPTIONS]
    ]
    return ", ".join(filter(None, named))


_KINDS: Mapping[str, Callable[[Content], str]] = {
    "sticker": lambda _: "[a sticker]",
    "location": _location,
    "share_chat": lambda _: group_card(""),
    "share_user": lambda _: contact_card(""),
    "folder": lambda content: _bracketed("folder", _first(content, "file_name", "name")),
    "hongbao": lambda content: _bracketed("red packet", _first(content, "text", "title")),
    "system": _system,
    "calendar": _event,
    "general_calendar": _event,
    "share_calendar_event": _event,
    "video_chat": _meeting,
    "todo": _task,
    "vote": _poll,
}
