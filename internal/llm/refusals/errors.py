"""Makes the agent's errors of error responses, of all providers and both wire formats."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus

from internal.agent.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnavailable,
    ModelUnreachable,
    ModelWithoutCredit,
    Refusal,
    RefusalKind,
)
from internal.llm.errors import ProviderInfo, readable
from internal.llm.refusals.answer import ErrorAnswer, read_answer
from internal.llm.refusals.classifier import classify
from internal.llm.waits import parse_wait, retry_after, wait_in_words

# There is no status inside a stream: it is that of the code.
_STATUS_OF = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TEXT_TOOLS = " Setting llm.tool_calls to text lets any model call tools."


def error_from_body(
    peer: ProviderInfo,
    status: int | None,
    body: object,
    headers: Mapping[str, str] = {},
    *,
    unknown_status: int = 500,
) -> ModelError:
    """Translate the body of an error response, or an error inside a stream (`status` None).

    The names of `headers` are in lower case, or found in any case.

    A server that began to answer accepted the request, so an error inside a stream that has no
    known code counts as temporary, unless `unknown_status` says what else it is.
    """
    answer = read_answer(status, body)
    if status is None:
        known = filter(None, map(_status_of, answer.codes))
        answer = answer._replace(status=next(known, None))
    refusal = classify(answer, peer.name)
    status = answer.status or unknown_status
    if refusal.kind == "unknown":
        refusal = Refusal(_kind_of_status(status))
    error = _error(peer, status, answer, refusal)
    if isinstance(error, ModelUnavailable):
        error.retry_after = _wait(answer, headers)
    error.detail = " ".join((str(status), *answer.codes, answer.message))
    return error


def error_from_type(peer: ProviderInfo, kind: str, message: str) -> ModelError:
    """Translate an error that the Messages API sends inside a stream, where a type is a code."""
    return error_from_body(peer, None, {"type": kind, "message": message}, unknown_status=400)


def _status_of(code: str) -> int | None:
    known = _STATUS_OF.get(code)
    if known is None and re.fullmatch(r"[45]\d\d", code):
        return int(code)
    return known


_KIND_OF_STATUS: dict[int, RefusalKind] = {
    401: "key",
    402: "no_credit",
    403: "key",
    408: "unavailable",
    413: "body_size",
    429: "rate",
    503: "overloaded",
    529: "overloaded",
}


def _kind_of_status(status: int) -> RefusalKind:
    known = _KIND_OF_STATUS.get(status)
    if known is not None:
        return known
    return "unavailable" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "unknown"


_MEANINGS: dict[RefusalKind, tuple[type[ModelError], str]] = {
    "key": (ModelKeyRejected, "rejected the API key in {key}"),
    "region": (ModelRejected, "does not serve this region or country"),
    "no_model": (ModelRejected, "does not have the model, or the key may not use it"),
    "no_credit": (ModelWithoutCredit, "reports that the account has no credit"),
    "quota": (ModelRejected, "reports that the quota of the account is used up"),
    "content_filter": (ModelRejected, "refuses the content of a message"),
    "too_long": (ContextTooLong, "reports that the request is too long"),
    "body_size": (ContextTooLong, "reports that the request is too large"),
    "rate": (ModelOverloaded, "is rate-limiting requests"),
    "loading": (ModelOverloaded, "is still loading the model"),
    "overloaded": (ModelOverloaded, "is unavailable ({status})"),
    "unavailable": (ModelOverloaded, "is unavailable ({status})"),
}
_OTHER = (ModelRejected, "rejected the request ({status})")


def _wait(answer: ErrorAnswer, headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait: in headers, in a field, or in words."""
    now = datetime.now(UTC)
    waits = [retry_after(headers, now), *(parse_wait(text, now) for text in answer.waits)]
    known = [wait for wait in waits if wait is not None]
    if known:
        return max(known)
    in_words = wait_in_words(answer.words)
    return retry_after(answer.headers, now) if in_words is None else in_words


def _error(peer: ProviderInfo, status: int, answer: ErrorAnswer, refusal: Refusal) -> ModelError:
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return ModelUnreachable(f"{peer.name} timed out while receiving the request.")
    kind, meaning = _MEANINGS.get(refusal.kind, _OTHER)
    what = meaning.format(key=peer.key_name or "llm.api_key", status=status)
    reason = readable(answer.message)
    if refusal.kind == "tools" or refusal.change.get("effort"):
        reason += _TEXT_TOOLS
    sentence = f"{peer.name} {what}: {reason}" if reason else f"{peer.name} {what}."
    return kind(sentence, refusal=refusal)
