"""Bodies: what a client sends, read with a hard stop and decoded with nothing left over."""

import asyncio
import json
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope

from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.errors import HttpRefusal
from internal.channels.web.guards import Exchange

T = TypeVar("T")

MOST_PARAMETERS = 32


class Gone(Exception):
    """The client went away in the middle of its request."""


async def read_body(exchange: Exchange, receive: Receive, most: int, seconds: float) -> bytes:
    """Return the body, of which never more than `most` bytes are held.

    Raises:
        HttpRefusal: it is larger, whatever its Content-Length says, it does not come, or it is
            not JSON by its type.
        Gone: the client went away.
    """
    lengths = exchange.headers(b"content-length")
    if lengths and lengths[0].isdigit() and int(lengths[0]) > most:
        raise too_large(most)
    try:
        async with asyncio.timeout(seconds):
            body = await _read(receive, most)
    except TimeoutError as error:
        raise HttpRefusal(
            408, "timeout", f"The body did not come within {seconds:g} s.", {"connection": "close"}
        ) from error
    if body:
        _check_type(exchange)
    return body


async def _read(receive: Receive, most: int) -> bytes:
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Gone
        piece = message.get("body", b"")
        size += len(piece)
        if size > most:
            raise too_large(most)
        pieces.append(piece)
        more = message.get("more_body", False)
    return b"".join(pieces)


def too_large(most: int) -> HttpRefusal:
    """Return the refusal of a body; the connection ends with it, for the rest is not read."""
    return HttpRefusal(
        413,
        "too_large",
        f"The body is larger than {most:,} bytes.",
        {"connection": "close"},
    )


def _check_type(exchange: Exchange) -> None:
    kinds = exchange.headers(b"content-type")
    kind, _, parameters = (kinds[0] if len(kinds) == 1 else b"").lower().partition(b";")
    if kind.strip() != b"application/json" or parameters.strip().replace(b'"', b"") not in {
        b"",
        b"charset=utf-8",
    }:
        raise HttpRefusal(
            415, "unsupported_media_type", "Send the body with Content-Type: application/json."
        )


def decode_body(body: bytes, shape: type[T]) -> T:
    """Return the body as the shape it must have.

    Raises:
        Malformed: it is not JSON, has a field too many, twice or of the wrong kind; names it.
    """
    try:
        decoded = msgspec.json.decode(body, type=shape)
        json.loads(body, object_pairs_hook=_once)  # msgspec takes the last of two silently
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"The body does not fit: {error}.") from error
    except RecursionError as error:
        raise InvalidRequest("The body is nested too deeply.") from error
    except ValueError as error:  # DecodeError, UnicodeDecodeError
        raise InvalidRequest(f"The body is not valid JSON in UTF-8: {error}.") from error
    return decoded


def _once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(f"The body has the field {twice[:80]} twice.")


def decode_query(scope: Scope, shape: type[T]) -> T:
    """Return the query string as the shape it must have.

    Raises:
        Malformed: it is not UTF-8, or has a parameter too many, twice or of the wrong kind.
    """
    try:
        pairs = parse_qsl(
            scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_PARAMETERS,
        )
        given = dict(pairs)
        if len(given) < len(pairs):
            raise InvalidRequest("The address has a parameter twice.")
        return msgspec.convert(given, shape, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"The address's parameters do not fit: {error}.") from error
    except UnicodeError as error:
        raise InvalidRequest("The address's parameters are not UTF-8.") from error
    except ValueError as error:
        raise InvalidRequest(f"The address's parameters cannot be read: {error}.") from error
