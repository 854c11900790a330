"""Text as every database takes it: no NUL, which PostgreSQL refuses, and no lone surrogate."""

from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()


def plain(text: str) -> str:
    """Return the text with NULs and lone surrogates replaced by U+FFFD, otherwise unchanged."""
    if text.isascii():  # quick, and true for nearly all
        return text.replace("\0", "\ufffd")
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "\ufffd")


def to_json(value: Any) -> str:
    """Return the value as JSON. Lone surrogates, which UTF-8 does not have, become U+FFFD."""
    try:
        return _encoder.encode(value).decode()
    except UnicodeEncodeError:
        return _encoder.encode(_whole(msgspec.to_builtins(value))).decode()


def _whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_whole(key): _whole(member) for key, member in value.items()}
        case list() | tuple():
            return [_whole(member) for member in value]
        case _:
            return value
