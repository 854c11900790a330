"""HTTP errors and their JSON body."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
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
from internal.i18n.file_reasons import find_reason

RETRY_HEADER = "x-should-retry"
"""Header of errors that says whether client libraries should send the request again."""


class HttpError(RequestError):
    """An error with its HTTP status, a machine-readable code and additional headers."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        /,
        *,
        reason_code: str = "",
        **params: str | int,
    ) -> None:
        super().__init__(message, reason_code=reason_code, **params)
        self.status = status
        self.code = code
        self.headers = headers or {}


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong: `code` for programs, `message` for people.

    `reason_code` identifies the message, for texts in other languages, and `params` are its
    variable parts. Both are absent if the message is only for this one.
    """

    code: str
    message: str
    request_id: str
    reason_code: str | UnsetType = UNSET
    params: dict[str, str | int] | UnsetType = UNSET


class HttpErrorBody(msgspec.Struct, frozen=True):
    """The body of every error response."""

    error: ErrorDetail


class ModelApiErrorDetail(ErrorDetail, frozen=True, kw_only=True):
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
        reason_code, params = _reason(error)
        for kind, status, code in _STATUS_CODES:
            if isinstance(error, kind):
                headers = {"connection": "close"} if kind is FileTooLarge else None  # unread body
                return HttpError(
                    *(status, code, str(error), headers),
                    reason_code=reason_code,
                    **params,
                )
    return HttpError(500, "internal", "Internal server error. See the server log for details.")


def _reason(error: LarkspurError) -> tuple[str, Mapping[str, str | int]]:
    """Return the reason code of an error and its variable parts."""
    if isinstance(error, DocumentUnreadable):
        # its sentence comes from a child process, so that it is found in the catalogue of these
        return find_reason(str(error)) or ("", {})
    return error.reason_code, error.params


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
    said: dict[str, Any] = {"code": error.code, "message": str(error), "request_id": request_id}
    if is_model_api(path):
        body = ModelApiErrorBody(ModelApiErrorDetail(**said, type=error_type(error.status)))
    else:
        if error.reason_code:
            said |= {"reason_code": error.reason_code, "params": dict(error.params)}
        body = HttpErrorBody(ErrorDetail(**said))
    return Response(
        msgspec.json.encode(body),
        error.status,
        headers=error.headers,
        media_type="application/json",
    )
