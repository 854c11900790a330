"""Clipping: text as it can be stored and shown: whole characters, and not too many of them."""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

LONGEST_TEXT = 40_000
LONGEST_BYTES = 60_000
"""JSON of what is long in an event's payload; with the rest of it under 64 KB."""

MOST_ARGUMENTS = 50
DEEPEST = 60
"""So deep may values be nested: every encoder and decoder on their way manages that."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")
_LONGEST_KEY = 200
_NOTE_BYTES = 50


def whole(text: str) -> str:
    """Return the text with every lone surrogate replaced: no encoder would take it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # two halves that belong together become the character that they are
        return _HALF.sub("\ufffd", _PAIR.sub(_character, text))
    return text


def whole_value(value: Any, deepest: int = DEEPEST) -> Any:
    """Return a JSON value with all its text whole, and null for a number that JSON lacks.

    Raises:
        ValueError: it is nested too deep.
    """
    if deepest < 0:
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    match value:
        case str():
            return whole(value)
        case dict():
            return {whole(key): whole_value(each, deepest - 1) for key, each in value.items()}
        case list() | tuple():
            return [whole_value(each, deepest - 1) for each in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def clipped(text: str, most: int = LONGEST_TEXT) -> str:
    """Return the text, or its head and tail and how much is missing, in `most` characters."""
    if len(text) <= most:
        return text
    room = max(most - len(_note(len(text))), 0)
    return _joined(text, room * 2 // 3, room - room * 2 // 3)


def fitted(text: str, most_bytes: int = LONGEST_BYTES) -> str:
    """Return the text, whole and clipped so that as JSON it takes at most `most_bytes`.

    A control character takes six bytes as JSON, most others one to four. `most_bytes` is at least
    50, the size of the note that says how much is missing.
    """
    text = whole(text)
    if len(text) <= most_bytes and _bytes(text) <= most_bytes:
        return text
    room = max(most_bytes - _NOTE_BYTES, 0)
    head = _most(lambda n: text[:n], room * 2 // 3)
    tail = _most(lambda n: text[len(text) - n :], room - room * 2 // 3)
    return _joined(text, head, tail)


def fitted_arguments(
    arguments: Mapping[str, Any], most_bytes: int = LONGEST_BYTES
) -> dict[str, Any]:
    """Return a call's arguments in about `most_bytes` of JSON.

    Long texts are clipped, big lists and objects become their JSON, clipped. Past the first 50
    arguments only their number is told.
    """
    kept = list(arguments.items())[:MOST_ARGUMENTS]
    room = most_bytes // max(len(kept), 1)
    fitting = {fitted(key, _LONGEST_KEY): _fitted_value(value, room) for key, value in kept}
    if len(arguments) > len(kept):
        fitting["…"] = f"{len(arguments) - len(kept)} more arguments"
    return fitting


def _character(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _fitted_value(value: Any, room: int) -> Any:
    try:
        value = whole_value(value)
    except ValueError as error:
        return f"({error})"
    if isinstance(value, str):
        return fitted(value, max(room - _LONGEST_KEY, _NOTE_BYTES))
    text = msgspec.json.encode(value).decode()
    if len(text.encode()) + _LONGEST_KEY <= room:
        return value
    return fitted(text, max(room - _LONGEST_KEY, _NOTE_BYTES))


def _most(part: Callable[[int], str], room: int) -> int:
    """Return how many characters of a part take at most `room` bytes."""
    return bisect_right(range(1, room + 1), room, key=lambda n: _bytes(part(n)))


def _bytes(text: str) -> int:
    return len(msgspec.json.encode(text)) - 2  # without the quotes around it


def _joined(text: str, head: int, tail: int) -> str:
    return f"{text[:head]}{_note(len(text) - head - tail)}{text[len(text) - tail :]}"


def _note(missing: int) -> str:
    return f"\n… {missing:,} characters left out …\n"
