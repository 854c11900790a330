"""Structured content that repeats the other parts of a result, as the protocol asks servers to."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_MAX_ATTEMPTS = 20
"""The places of a text at which a JSON value may begin."""
_OPENING = ("{", "[")


def is_repeated(structured: Any, parts: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if the parts of a result repeat its structured content.

    Spaces, the order of keys and words around a JSON text are ignored, and so is an object of one
    key in which servers wrap a value: `{"result": …}`, `{"content": …}`.
    """
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    for value in _unwrapped(structured):
        if any(_says(text, value) for text in (*texts, "\n".join(texts), "".join(texts))):
            return True
        if _is_list_of(value, parts):
            return True
    return False


def _unwrapped(structured: Any) -> Iterator[Any]:
    """Yield a value, then its only member if it is an object of one key."""
    yield structured
    if isinstance(structured, dict) and len(structured) == 1:
        yield next(iter(structured.values()))


def _is_list_of(value: Any, parts: Sequence[Mapping[str, Any]]) -> bool:
    """Return True for a list with an item for each part."""
    if not isinstance(value, list) or not value or len(value) != len(parts):
        return False
    return all(_is_said_by(item, part) for item, part in zip(value, parts, strict=True))


def _is_said_by(item: Any, part: Mapping[str, Any]) -> bool:
    if isinstance(item, dict) and item.get("type") == part.get("type"):
        return all(part.get(key) == item[key] for key in ("text", "data", "uri") if key in item)
    return part.get("type") == "text" and _says(str(part.get("text", "")), item)


def _says(text: str, value: Any) -> bool:
    """Return True if a text is a value, is it as JSON, or has it as JSON among other words."""
    if isinstance(value, str) and text.strip() == value.strip():
        return True
    if any(_is_same(found, value) for found in _values_in(text)):
        return True
    return value is None and text.strip() in {"", "None"}


def _values_in(text: str) -> Iterator[Any]:
    """Yield the text as a JSON value, or the objects and lists that begin somewhere in it."""
    decoder = json.JSONDecoder(strict=False)
    try:
        yield decoder.decode(text)
    except (ValueError, RecursionError):
        pass
    else:
        return
    position = _next_opening(text, 0)
    for _ in range(_MAX_ATTEMPTS):
        if position < 0:
            return
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            yield value
        position = _next_opening(text, end)


def _next_opening(text: str, start: int) -> int:
    return min((at for each in _OPENING if (at := text.find(each, start)) >= 0), default=-1)


def _is_same(found: Any, value: Any) -> bool:
    """Return True for equal JSON values; true is not 1."""
    match found, value:
        case dict(), dict():
            return found.keys() == value.keys() and all(
                _is_same(found[key], value[key]) for key in value
            )
        case list(), list():
            return len(found) == len(value) and all(map(_is_same, found, value))
        case _:
            is_same: bool = found == value and isinstance(found, bool) == isinstance(value, bool)
            return is_same
