"""Clipping: text as it can be stored and shown: whole characters, and not too many of them."""

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

import msgspec

MAX_TEXT_CHARS = 40_000
MAX_JSON_BYTES = 60_000
"""JSON of what is long in an event's payload; with the rest of it under 64 KB."""

MAX_ARGUMENTS = 50
MAX_NESTING = 60
"""So deep may values be nested: every encoder and decoder on their way manages that."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")
_LONGEST_KEY = 200
_NOTE_BYTES = 50


def replace_surrogates(text: str) -> str:
    """Return the text with every lone surrogate replaced: no encoder would take it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # two halves that belong together become the character that they are
        return _HALF.sub("\ufffd", _PAIR.sub(_character, text))
    return text


def replace_surrogates_in(value: Any, deepest: int = MAX_NESTING) -> Any:
    """Return a JSON value with all its text whole, and null for a number that JSON lacks.

    Raises:
        ValueError: it is nested too deep.
    """
    if deepest < 0:
        raise ValueError(f"it is nested more than {MAX_NESTING} deep")
    match value:
        case str():
            return replace_surrogates(value)
        case dict():
            return {
                replace_surrogates(key): replace_surrogates_in(each, deepest - 1)
                for key, each in value.items()
            }
        case list() | tuple():
            return [replace_surrogates_in(each, deepest - 1) for each in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def truncate(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """Return the text, or its head and tail and how much is missing, in `most` characters."""
    if len(text) <= most:
        return text
    room = max(most - len(_note(len(text))), 0)
    return _joined(text, room * 2 // 3, room - room * 2 // 3)


def truncate_json(text: str, most_bytes: int = MAX_JSON_BYTES) -> str:
    """Return the text, whole and clipped so that as JSON it takes at most `most_bytes`.

    A control character takes six bytes as JSON, most others one to four. `most_bytes` is at least
    50, the size of the note that says how much is missing.
    """
    text = replace_surrogates(text)
    if len(text) <= most_bytes and _bytes(text) <= most_bytes:
        return text
    room = max(most_bytes - _NOTE_BYTES, 0)
    head = _most(lambda n: text[:n], room * 2 // 3)
    tail = _most(lambda n: text[len(text) - n :], room - room * 2 // 3)
    return _joined(text, head, tail)


def truncate_arguments(
    arguments: Mapping[str, Any], most_bytes: int = MAX_JSON_BYTES
) -> dict[str, Any]:
    """Return a call's arguments in about `most_bytes` of JSON.

    Long texts are clipped, big lists and objects become their JSON, clipped. Past the first 50
    arguments only their number is told.
    """
    kept = list(arguments.items())[:MAX_ARGUMENTS]
    room = most_bytes // max(len(kept), 1)
    fitting = {truncate_json(key, _LONGEST_KEY): _fitted_value(value, room) for key, value in kept}
    if len(arguments) > len(kept):
        fitting["…"] = f"{len(arguments) - len(kept)} more arguments"
    return fitting


def _character(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _fitted_value(value: Any, room: int) -> Any:
    try:
        value = replace_surrogates_in(value)
    except ValueError as error:
        return f"({error})"
    if isinstance(value, str):
        return truncate_json(value, max(room - _LONGEST_KEY, _NOTE_BYTES))
    text = msgspec.json.encode(value).decode()
    if len(text.encode()) + _LONGEST_KEY <= room:
        return value
    return truncate_json(text, max(room - _LONGEST_KEY, _NOTE_BYTES))


def _most(part: Callable[[int], str], room: int) -> int:
    """Return how many characters of a part take at most `room` bytes."""
    return bisect_right(range(1, room + 1), room, key=lambda n: _bytes(part(n)))


def _bytes(text: str) -> int:
    return len(msgspec.json.encode(text)) - 2  # without the quotes around it


def _joined(text: str, head: int, tail: int) -> str:
    return f"{text[:head]}{_note(len(text) - head - tail)}{text[len(text) - tail :]}"


def _note(missing: int) -> str:
    return f"\n… {missing:,} characters left out …\n"


_ESCAPE = r"\\(?=u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_TRICKS = re.compile(rf"{_ESCAPE}|[ \t]+|\n{{9,}}|[^ -~\n\t\u4e00-\u9fff]")
_NOT_PRINTABLE_ASCII = re.compile(r"[^ -~\n\t]")
_FOREIGN = re.compile(r"[^\x00-\x7f\u4e00-\u9fff]+")  # nothing else has two spellings
_WIDEST_GAP = 80  # blanks in a row; more of them push what follows out of sight
_MOST_MARKS = 4  # on one letter; more of them cover the lines above and below
_UNSEEN = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC),
            *(0x180B, 0x180C, 0x180D, 0x180F, 0x16FE4, 0x1D159),
            *range(0xFE00, 0xFE10),  # variation selectors
            *range(0xE0100, 0xE01F0),
        ),
    )
)
"""Letters, signs and marks by class that are drawn as nothing (Default_Ignorable_Code_Point)."""


def is_invisible(char: str) -> bool:
    """Whether a character other than space, tab and line feed cannot be seen, or moves others.

    That is: controls, format and bidi signs, blanks of all widths, halves of characters, and
    whatever Unicode gives no meaning or draws as nothing.
    """
    return unicodedata.category(char)[0] in "CZ" or char in _UNSEEN


def find_invisible(text: str) -> str:
    """Return the first invisible character other than space, tab and line feed, or ""."""
    return next((char for char in _NOT_PRINTABLE_ASCII.findall(text) if is_invisible(char)), "")


def escape_invisible(text: str) -> str:
    r"""Return a text as it may be shown to whoever must judge it. It keeps its lines and tabs.

    Two different texts never show alike: no two give the same result, and no result is a canonical
    equivalent of another (Unicode NFC), so that `e` with an accent put on it is not taken for `é`.
    Blanks at the end of a line, and gaps too wide to see across, are counted: `\u0020{3}`.
    """
    return _distinct(_TRICKS.sub(_shown, text))


def _shown(found: re.Match[str]) -> str:
    part = found[0]
    if part[0] in " \t":
        ends = found.end() == len(found.string) or found.string[found.end()] == "\n"
        if ends and len(part) == 1:
            return _escape(part)
        return _counted(part) if ends or len(part) > _WIDEST_GAP else part
    if part[0] == "\n":
        return _counted(part)
    return _escape(part) if part == "\\" or is_invisible(part) else part


def _counted(blanks: str) -> str:
    runs = ((blank, len(list(run))) for blank, run in groupby(blanks))
    return "".join(f"{_escape(blank)}{{{count}}}" for blank, count in runs)


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004  # \u has four digits


def _distinct(text: str) -> str:
    """Escape what another spelling of the text would show as, and marks piled on one letter."""
    return _FOREIGN.sub(_spelled_out, text)


def _spelled_out(found: re.Match[str]) -> str:
    shown: list[str] = []
    letter = found.string[
        max(found.start() - 1, 0) : found.start()
    ]  # the last letter with its marks
    for char in found[0]:
        is_mark = unicodedata.category(char)[0] == "M"
        if is_mark and len(letter) > _MOST_MARKS:
            shown.append(_escape(char))
        elif unicodedata.is_normalized("NFC", letter + char):
            letter = letter + char if is_mark else char
            shown.append(char)
        else:
            shown.append(_escape(char))
            letter = shown[-1][-1]
    return "".join(shown)


def truncate_line(text: str, most: int) -> str:
    """Return the text on one line, at most so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
