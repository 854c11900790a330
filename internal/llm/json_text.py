"""Text as it may really come: half characters, lone surrogates, no JSON at all."""

import json
from typing import Any

import msgspec


def whole(text: str) -> str:
    """Return the text with every lone surrogate replaced, so that it can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # through UTF-16, so that two halves which belong together become the character they are
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def whole_values(value: Any) -> Any:
    """Return JSON-like data with all its strings made `whole`, keys included."""
    match value:
        case str():
            return whole(value)
        case dict():
            return {whole(str(key)): whole_values(item) for key, item in value.items()}
        case list() | tuple():
            return [whole_values(item) for item in value]
        case _:
            return value


def encode_json(value: Any) -> bytes:
    """Encode data as JSON, whatever its strings hold."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(whole_values(value))


def decode_json(raw: bytes) -> Any:
    """Decode JSON leniently: broken UTF-8 and lone surrogates are replaced, bare controls kept.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deep.
    """
    try:
        return msgspec.json.decode(raw)
    except ValueError:  # msgspec is strict about all three
        return whole_values(json.loads(raw.decode("utf-8", "replace"), strict=False))


def clip(text: str, limit: int = 500) -> str:
    """Return the text on one line, at most `limit` characters of it."""
    line = " ".join("".join(c if c.isprintable() else " " for c in whole(text)).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
