"""Text and JSON as every database accepts them: no NUL (PostgreSQL), no lone surrogates."""

from typing import Any

import msgspec

from internal.agent.domain.text import replace_surrogates, replace_surrogates_in

_MAX_DEPTH = 200  # above the limit of tool arguments, which are nested in other records

_encoder = msgspec.json.Encoder()


def storable(text: str) -> str:
    """Return the text with NULs and lone surrogates replaced by U+FFFD."""
    return replace_surrogates(text).replace("\0", "\ufffd")


def to_json(value: Any) -> str:
    """Return the value as JSON, with lone surrogates replaced by U+FFFD."""
    try:
        return _encoder.encode(value).decode()
    except UnicodeEncodeError:
        builtins = msgspec.to_builtins(value, str_keys=True)
        return _encoder.encode(replace_surrogates_in(builtins, _MAX_DEPTH)).decode()
