"""HTTP errors and their JSON body."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from internal.agent.domain.errors import (
    Conflict,
    DocumentUnreadable,
    FilesUnavailable,
    FileTooLarge,
    Forbidden,
    InvalidRequest,
    LarkspurError,
    NotFound,
    RequestError,
    StoreError,
    TooManyTasks,
    WrittenEarlier,
    WrongHash,
)

RETRY_HEADER = "x-should-retry"
"""Header of errors that says whether client libraries should send the request again."""


class HttpError(RequestError):
    """An error with its HTTP status, a machine-readable code and additional headers."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or {}


class ErrorDetail(msgspec.Struct, frozen=True):
    """What went wrong: `code` for programs, `message` for people."""

    code: str
    message: str
    request_id: str


class HttpErrorBody(msgspec.Struct, frozen=True):
    """The body of every error response."""

    error: ErrorDetail


class ModelApiErrorDetail(ErrorDetail, frozen=True):
    """An error as clients of OpenAI's API read it: with its `type`, and the field that it is about.

    The field is in the message only.
    """

    type: str
    param: str | None = None


class ModelApiErrorBody(msgspec.Struct, frozen=True):
    """The body of an error response below `/v1`."""

    error: ModelApiErrorDetail


_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_SERVER_ERROR = 500

_STATUS_CODES: tuple[tuple[type[Exception], int, str], ...] = (
    (FileTooLarge, 413, "too_large"),
    (DocumentUnreadable, 404, "unreadable"),
    (WrongHash, 422, "wrong_hash"),
    (InvalidRequest, 400, "malformed"),
    (Forbidden, 403, "forbidden"),
    (NotFound, 404, "not_found"),
    (TooManyTasks, 429, "too_many_tasks"),
    (WrittenEarlier, 409, "written_earlier"),
    (Conflict, 409, "conflict"),
    (StoreError, 503, "store_unavailable"),
    (FilesUnavailable, 503, "store_unavailable"),
)


def to_http_error(error: Exception) -> HttpError:
    """Return the HTTP error for an exception; an unexpected one does not reveal its text."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, TimeoutError):
        return HttpError(
            504, "timeout", "The request timed out. It may still have been carried out."
        )
    if isinstance(error, LarkspurError):
        for kind, status, code in _STATUS_CODES:
            if isinstance(error, kind):
                headers = {"connection": "close"} if kind is FileTooLarge else None  # unread body
                return HttpError(status, code, str(error), headers)
    return HttpError(500, "internal", "Internal server error. See the server log for details.")


def is_model_api(path: str) -> bool:
    """Return whether clients of OpenAI's API use a path."""
    return path.startswith("/v1/")


def error_type(status: int) -> str:
    """Return the `type` of an error in OpenAI's API."""
    default = "server_error" if status >= _SERVER_ERROR else "invalid_request_error"
    return _ERROR_TYPES.get(status, default)


def error_response(error: HttpError, request_id: str, path: str = "") -> Response:
    """Return the JSON response for an error at a path."""
    body: HttpErrorBody | ModelApiErrorBody
    if is_model_api(path):
        kind = error_type(error.status)
        body = ModelApiErrorBody(ModelApiErrorDetail(error.code, str(error), request_id, kind))
    else:
        body = HttpErrorBody(ErrorDetail(error.code, str(error), request_id))
    return Response(
        msgspec.json.encode(body),
        error.status,
        headers=error.headers,
        media_type="application/json",
    )
