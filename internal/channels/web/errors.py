"""Refusals: every error of the door as JSON, in one shape, with the sentence a person reads."""

import http
from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from internal.agent.domain.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LarkspurError,
    NotFound,
    RequestError,
    StoreError,
)


class HttpRefusal(RequestError):
    """A refusal with an HTTP status of its own, a code for programs, and more headers."""

    def __init__(
        self, status: int, code: str, sentence: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code
        self.headers = headers or {}


class Fault(msgspec.Struct, frozen=True):
    """What went wrong: `code` for programs, `message` for people."""

    code: str
    message: str
    request_id: str


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of every answer that is an error."""

    error: Fault


_KNOWN: tuple[tuple[type[Exception], int, str], ...] = (
    (InvalidRequest, 400, "malformed"),
    (Forbidden, 403, "forbidden"),
    (NotFound, 404, "not_found"),
    (Conflict, 409, "conflict"),
    (StoreError, 503, "store_unavailable"),
)


def as_refusal(error: Exception) -> HttpRefusal:
    """Return an error as the door answers it; one that nobody foresaw says nothing of itself."""
    if isinstance(error, HttpRefusal):
        return error
    if isinstance(error, TimeoutError):
        return HttpRefusal(504, "timeout", "The request took too long; it may have been done.")
    if isinstance(error, LarkspurError):
        for kind, status, code in _KNOWN:
            if isinstance(error, kind):
                return HttpRefusal(status, code, str(error))
    return HttpRefusal(500, "internal", "Something went wrong here; the log says what.")


def refusal_response(refusal: HttpRefusal, request_id: str) -> Response:
    """Return the answer that tells a client of a refusal."""
    fault = Fault(refusal.code, str(refusal), request_id)
    return Response(
        msgspec.json.encode(ErrorBody(fault)),
        refusal.status,
        headers=refusal.headers,
        media_type="application/json",
    )


def phrase(status: int) -> str:
    """Return what HTTP calls a status."""
    return http.HTTPStatus(status).phrase
