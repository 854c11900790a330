"""Request context, and strict decoding of bodies and query strings."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope

from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.principals import Principal
from internal.channels.web.errors import HttpError
from internal.normal_forms.optional_fields import without_default_nulls

T = TypeVar("T")

MAX_QUERY_PARAMETERS = 32
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class RequestContext(msgspec.Struct):
    """One request on its way through the middleware.

    Attributes:
        scope: The ASGI scope.
        request_id: Identifies the request in the response headers, errors and the log.
        is_public: The route does not require authentication.
        principal: The authenticated principal, if any.
        token_id: The local token that authenticated the request, or that was valid at the login.
        login_id: The login that authenticated the request; empty unless by cookie.
        rejection: Why the credentials of the request were rejected, if they were.
    """

    scope: Scope
    request_id: str
    is_public: bool
    principal: Principal | None = None
    token_id: str = ""
    login_id: str = ""
    rejection: HttpError | None = None

    @property
    def method(self) -> str:
        """The request method in upper case."""
        return str(self.scope["method"])

    @property
    def is_preflight(self) -> bool:
        """True for the preflight request of a browser for a page of another origin."""
        return self.method == "OPTIONS" and bool(self.headers(b"access-control-request-method"))

    def require_principal(self) -> Principal:
        """Return the authenticated principal.

        Raises:
            HttpError: The request is not authenticated; only public routes receive such requests.
        """
        if self.principal is None:
            raise HttpError(401, "unauthorized", "Authentication is required.")
        return self.principal

    def headers(self, name: bytes) -> list[bytes]:
        """Return all values of a header; `name` is in lower case."""
        return [value for key, value in self.scope["headers"] if key == name]


class ClientDisconnected(Exception):
    """The client closed the connection before the request was complete."""


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work for a client, whose request was read.

    Raises:
        ClientDisconnected: The client left before; the work was cancelled.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait({working, leaving})
    if working.cancelled():
        raise ClientDisconnected
    return working.result()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def stream_body(
    context: RequestContext, receive: Receive, *, max_bytes: int, timeout_seconds: float
) -> AsyncGenerator[bytes]:
    """Return the pieces of a request body of any media type.

    The reader counts the bytes: it has to discard the stored part of a body that is too large.

    Raises:
        HttpError: The announced length is too large, or, while the body is read, nothing arrives
            for `timeout_seconds`.
        ClientDisconnected: While it is read, the client closes the connection.
    """
    _check_length(context, max_bytes)
    return _pieces(receive, sys.maxsize, timeout_seconds)


async def read_body(
    context: RequestContext, receive: Receive, *, max_bytes: int, timeout_seconds: float
) -> bytes:
    """Return the request body; at most `max_bytes` of it are held in memory.

    Raises:
        HttpError: The body is too large, incomplete after `timeout_seconds`, or not JSON
            according to its Content-Type.
        ClientDisconnected: The client closed the connection.
    """
    _check_length(context, max_bytes)
    try:
        async with asyncio.timeout(timeout_seconds):
            body = b"".join([piece async for piece in _pieces(receive, max_bytes)])
    except TimeoutError as error:
        raise _too_slow(timeout_seconds) from error
    if body:
        _check_content_type(context)
    return body


def _check_length(context: RequestContext, max_bytes: int) -> None:
    lengths = context.headers(b"content-length")
    if lengths and lengths[0].isdigit() and int(lengths[0]) > max_bytes:
        raise _too_large(max_bytes)


async def _pieces(
    receive: Receive, max_bytes: int, idle_seconds: float | None = None
) -> AsyncGenerator[bytes]:
    size, more = 0, True
    while more:
        try:
            async with asyncio.timeout(idle_seconds):
                message = await receive()
        except TimeoutError as error:
            raise _too_slow(idle_seconds or 0) from error
        if message["type"] != "http.request":
            raise ClientDisconnected
        piece = message.get("body", b"")
        size += len(piece)
        if size > max_bytes:
            raise _too_large(max_bytes)
        yield piece
        more = message.get("more_body", False)


def _too_slow(seconds: float) -> HttpError:
    return HttpError(
        408,
        "timeout",
        f"The request body was not received within {seconds:g} s.",
        {"connection": "close"},
        reason_code="body_timeout",
        seconds=round(seconds),
    )


def _too_large(max_bytes: int) -> HttpError:
    # the rest of the body is not read, so the connection cannot be reused
    return HttpError(
        413,
        "too_large",
        f"The request body exceeds {max_bytes:,} bytes.",
        {"connection": "close"},
        reason_code="body_too_large",
        limit=max_bytes,
    )


def _check_content_type(context: RequestContext) -> None:
    values = context.headers(b"content-type")
    media_type, _, parameters = (values[0] if len(values) == 1 else b"").lower().partition(b";")
    if media_type.strip() != b"application/json" or parameters.strip().replace(b'"', b"") not in {
        b"",
        b"charset=utf-8",
    }:
        raise HttpError(415, "unsupported_media_type", "The Content-Type must be application/json.")


def decode_body(body: bytes, model: type[T]) -> T:
    """Decode a JSON body.

    Raises:
        InvalidRequest: The body is not JSON, or has an unknown, duplicate, missing or mistyped
            field; the message names the field.
    """
    try:
        decoded = _decoded(body, model)
        # msgspec silently takes the last of two equal keys
        json.loads(body, object_pairs_hook=_reject_duplicates)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"Invalid request body: {error}.", reason_code="body_invalid", detail=str(error)
        ) from error
    except RecursionError as error:
        raise InvalidRequest(
            "The request body is nested too deeply.", reason_code="body_too_deep"
        ) from error
    except ValueError as error:  # DecodeError, UnicodeDecodeError
        raise InvalidRequest(
            f"The request body is not valid JSON in UTF-8: {error}.",
            reason_code="body_not_json",
            detail=str(error),
        ) from error
    return decoded


def _decoded(body: bytes, model: type[T]) -> T:
    """Decode a JSON body; null counts as absent where a field has a default.

    Raises:
        ValueError: as of msgspec.
    """
    try:
        return msgspec.json.decode(body, type=model)
    except msgspec.ValidationError:
        # only then: most bodies have no null
        plain = without_default_nulls(msgspec.json.decode(body), model)
        return msgspec.json.decode(msgspec.json.encode(plain), type=model)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(
            f"The request body contains the field {duplicate[:80]} twice.",
            reason_code="field_twice",
            field=duplicate[:80],
        )


def decode_query(scope: Scope, model: type[T]) -> T:
    """Decode the query string.

    Raises:
        InvalidRequest: It is not UTF-8, or has an unknown, duplicate or mistyped parameter.
    """
    try:
        pairs = parse_qsl(
            scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_QUERY_PARAMETERS,
        )
        parameters = dict(pairs)
        if len(parameters) < len(pairs):
            raise InvalidRequest(
                "The query string contains a parameter twice.", reason_code="parameter_twice"
            )
        return msgspec.convert(parameters, model, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"Invalid query parameters: {error}.", reason_code="query_invalid", detail=str(error)
        ) from error
    except UnicodeError as error:
        raise InvalidRequest(
            "The query string is not valid UTF-8.", reason_code="query_not_utf8"
        ) from error
    except ValueError as error:
        raise InvalidRequest(
            f"The query string cannot be parsed: {error}.",
            reason_code="query_unreadable",
            detail=str(error),
        ) from error
