"""What went wrong, by the many shapes in which servers of Chat Completions say it."""

import re
from collections.abc import Mapping
from typing import Any

from internal.agent.domain.errors import ModelError
from internal.llm.errors import Peer, error_of_status
from internal.llm.text import encode_json

# In a stream there is no status. Whoever began to answer could take the request: what is not known
# here is taken for a fault that passes.
_STATUS_OF = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "insufficient_quota": 402,
    "permission_error": 403,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
}
_FAULT = 500
_NO_TOOLS = re.compile(r"does not support (tools|function)|tool(s| use| calling) (is|are) not supp")
_TOOLS_ELSEWHERE = re.compile(r"function tools with reasoning_effort", re.IGNORECASE)


def error_of_body(
    peer: Peer, status: int | None, body: object, retry_after: float | None = None
) -> ModelError:
    """Return our error for the body of a refusal, or without `status` for an error in a stream."""
    codes, said = _said_in(body)
    if status is None:
        status = next((known for code in codes if (known := _status(code))), _FAULT)
    if _NO_TOOLS.search(said) or _TOOLS_ELSEWHERE.search(said):
        said += " Setting llm.tool_calls to text lets any model call tools."
    code = " ".join(map(str, codes))
    return error_of_status(peer, status, said, code=code, retry_after=retry_after)


def _status(code: object) -> int | None:
    try:
        status = int(str(code))
    except ValueError:
        return _STATUS_OF.get(str(code))
    return status if 400 <= status <= 599 else None  # noqa: PLR2004  # the errors of HTTP


def _said_in(body: object) -> tuple[list[object], str]:
    """Return the codes and the message: `{error: {…}}`, `{error: "…"}`, `{detail}`, text, lists."""
    codes: list[object] = []
    match body:
        case [first, *_] | {"error": dict() | str() | list() as first}:
            return _said_in(first)
        case {"message": str(said), **rest}:
            codes, said = _codes(rest), f"{said}{_upstream(rest)}"
        case str(said) | {"detail": str(said)}:
            pass
        case other:
            said = "" if other is None else encode_json(other).decode()
    return codes, said.strip() or "it gave no reason"


def _codes(error: Mapping[Any, Any]) -> list[object]:
    return [error[name] for name in ("code", "type") if error.get(name) not in {None, ""}]


def _upstream(error: Mapping[Any, Any]) -> str:
    """Return what the provider behind a router said: the router's own words are often empty."""
    match error:
        case {"metadata": {"raw": str(raw)}} if raw.strip():
            return f" ({raw.strip()})"
        case _:
            return ""
