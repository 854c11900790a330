"""JSON with broken UTF-8, lone surrogates and control characters, as providers send it."""

import json
from typing import Any

import msgspec

from internal.agent.domain.secrets import mask_secrets
from internal.agent.domain.text import replace_surrogates, replace_surrogates_in


def encode_json(value: Any) -> bytes:
    """Encode data as JSON. Lone surrogates in its strings are replaced."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(replace_surrogates_in(value))


def decode_json(raw: bytes) -> Any:
    """Decode JSON leniently: broken UTF-8 and lone surrogates are replaced, bare controls kept.

    Raises:
        ValueError: the bytes are not JSON, or nested deeper than the agent's data may be.
        RecursionError: the JSON is nested too deeply for the parser.
    """
    try:
        return msgspec.json.decode(raw)
    except ValueError:  # msgspec rejects all three
        return replace_surrogates_in(load_json(raw))


def load_json(raw: bytes) -> Any:
    """Decode JSON like `decode_json`, but keep lone surrogates: the next text may have the rest.

    Raises:
        ValueError: the bytes are not JSON.
        RecursionError: the JSON is nested too deeply for the parser.
    """
    return json.loads(raw.decode("utf-8", "replace"), strict=False)


def one_line(text: str, limit: int = 500) -> str:
    """Return the text on one line, with every secret masked, truncated to `limit` characters."""
    text = mask_secrets(replace_surrogates(text))  # first: half a secret is not recognised
    printable = (c if c.isprintable() else " " for c in text)
    line = " ".join("".join(printable).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
