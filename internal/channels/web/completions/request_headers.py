"""Headers of requests that all APIs for completions read."""

from typing import Any

import msgspec

from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.delivery import SESSION_HEADER, USER_HEADERS
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import Key


def named_session(request: ApiRequest[Any, Any]) -> str:
    """Return the session that a request names, or ""."""
    named = request.context.headers(SESSION_HEADER.encode())
    return named[0].decode("latin-1").strip() if named else ""


def named_user(request: ApiRequest[Any, Any], user: str) -> str:
    """Return the user and the conversation that a program names, or "".

    Args:
        request: the request, with or without the headers of Open WebUI.
        user: its field `user`.
    """
    named = [value for name in USER_HEADERS for value in request.context.headers(name)[:1]]
    return "\n".join([user, *(each.decode("latin-1") for each in named)]) if named else user


def idempotency_key(request: ApiRequest[Any, Any]) -> str | None:
    """Return the key that a request has.

    Raises:
        InvalidRequest: it is empty or too long.
    """
    keys = request.context.headers(b"idempotency-key")
    try:
        return msgspec.convert(keys[0].decode("latin-1"), Key) if keys else None
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"Invalid header Idempotency-Key: {error}.") from error
