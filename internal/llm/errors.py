"""Translates error responses of all providers into the agent's error types."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple

from internal.agent.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
    ModelWithoutCredit,
)
from internal.llm.lenient_json import one_line

# One line per provider or server: each words it differently.
# Patterns as text: each is compiled at its first use, most never.
_TOO_LONG = (
    r"(?i)prompt is too long|context[ _](window|length|limit|size)"  # Anthropic, OpenAI, llama.cpp
    r"|exceeds? (the )?(maximum )?context|input tokens? exceeds?"
    r"|maximum (prompt|model) length|longer than the maximum"  # xAI, vLLM
    r"|input (length|token count)[^.]*exceed|exceed[^.]*max(imum)? (input|message|number of) "
    r"(length|tokens)|exceeded model token limit|request too large"  # Ark, Gemini, Moonshot, Groq
    r"|range of input length|reduce the length of the (messages|prompt|input)"  # Qwen
    r"|prompt exceeds max length|prompt 超长|输入(内容|文本)?(过长|超长)"  # Zhipu
    r"|must be <= \d+|context the overflows"  # Together, LM Studio
)
_NO_CREDIT = (
    r"(?i)insufficient[ _](balance|quota|credits?|funds)|account ?overdue|credit balance is too low"
    r"|overdue balance|billing[ _]hard[ _]limit|余额不足|欠费"
)
# Anthropic, OpenAI, DeepSeek, Ark, Qwen, Together: the largest output limit is the number after it.
_OUTPUT_LIMIT = (
    r"(?i)max_(?:completion_|output_)?tokens(?![^.]*(?:context|input|prompt)).*?"
    r"(?:> |at most |maximum |range of max_tokens is \[\d+, ?|<= ?|\[\d+, ?"
    r"|less than (?:or equal to )?|up to )`?(\d+)"
)
_MACHINE_TEXT = r"(?is)\s*[{\[<]|.*(?:Traceback|[{\[]\s*['\"]|</?[a-z]+>)"
_ADDRESS_OR_ID = (
    r"(?i)[(\[]?\b(?:https?://\S+|(?:request|trace|log)[ _-]?id\b\W*[\w-]+|(?:req_|org-)\w+"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})[)\]]?[.,;]?"
)
_CLASS_NAME = r"\b(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b[\s:-]*"
_FLAGGED = r"(?i)moderation|flagged|content policy"
_MAY_BE_LENGTH = {400, 413, 422, 500}


class ProviderInfo(NamedTuple):
    """The name of a provider and the variable of its key, None if it needs no key."""

    name: str
    key_name: str | None


def missing_key_error(peer: ProviderInfo) -> ModelKeyRejected:
    """Return the error for a missing key."""
    return ModelKeyRejected(
        f"No API key for {peer.name}: set {peer.key_name} or llm.api_key, or use the offline demo "
        "model with llm.provider: offline."
    )


def invalid_key_error(peer: ProviderInfo) -> ModelKeyRejected:
    """Return the error for a key that cannot be sent in a header."""
    return ModelKeyRejected(f"The API key in {_key(peer)} contains invalid characters.")


def error_from_status(
    peer: ProviderInfo,
    status: int,
    message: str,
    *,
    code: str = "",
    retry_after: float | None = None,
) -> ModelError:
    """Translate an HTTP status with the provider's message and error code into an error."""
    message = one_line(message, 2_000)
    error = _error(peer, status, message, code=code, retry_after=retry_after)
    error.detail = f"{status} {code} {message}"
    return error


def readable(message: str) -> str:
    """Return what a provider says, if a person can read it, else "".

    Addresses, ids and names of exceptions are left out, JSON, HTML and stack traces as a whole.
    """
    if re.match(_MACHINE_TEXT, message):
        return ""
    text = re.sub(_CLASS_NAME, "", re.sub(_ADDRESS_OR_ID, "", message))
    return one_line(text, 300).strip(" :,;")


def find_output_limit(error: ModelError) -> int | None:
    """Return the largest output limit that the provider accepts, if it rejected a larger one."""
    found = re.search(_OUTPUT_LIMIT, error.detail) if isinstance(error, ModelRejected) else None
    return None if found is None else int(found[1])


def _error(
    peer: ProviderInfo, status: int, message: str, *, code: str, retry_after: float | None
) -> ModelError:
    if status == HTTPStatus.PAYMENT_REQUIRED or re.search(_NO_CREDIT, f"{code} {message}"):
        return ModelWithoutCredit(
            _with_reason(f"{peer.name} reports that the account has no credit", message)
        )
    if status < HTTPStatus.INTERNAL_SERVER_ERROR and re.search(_OUTPUT_LIMIT, message):
        return _rejected(peer, status, message)
    if status in _MAY_BE_LENGTH and re.search(_TOO_LONG, f"{code} {message}"):
        return _too_long(peer, message)
    if status == HTTPStatus.FORBIDDEN and re.search(_FLAGGED, message):
        return _rejected(peer, status, message)
    return _by_status(peer, status, message, retry_after)


def _by_status(
    peer: ProviderInfo, status: int, message: str, retry_after: float | None
) -> ModelError:
    if status in {401, 403}:
        return ModelKeyRejected(
            _with_reason(f"{peer.name} rejected the API key in {_key(peer)}", message)
        )
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return _too_long(peer, message)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return ModelOverloaded(
            _with_reason(f"{peer.name} is rate-limiting requests", message), retry_after
        )
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ModelOverloaded(
            _with_reason(f"{peer.name} is unavailable ({status})", message), retry_after
        )
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return ModelUnreachable(f"{peer.name} timed out while receiving the request.")
    return _rejected(peer, status, message)


def _too_long(peer: ProviderInfo, message: str) -> ContextTooLong:
    return ContextTooLong(
        _with_reason(f"{peer.name} reports that the request is too long", message)
    )


def _rejected(peer: ProviderInfo, status: int, message: str) -> ModelRejected:
    return ModelRejected(_with_reason(f"{peer.name} rejected the request ({status})", message))


def _with_reason(sentence: str, message: str) -> str:
    reason = readable(message)
    return f"{sentence}: {reason}" if reason else f"{sentence}."


def _key(peer: ProviderInfo) -> str:
    return peer.key_name or "llm.api_key"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the provider asks to wait, or None if it asks for no wait."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        given = headers.get(name, "")
        try:
            seconds = float(given) / unit
        except ValueError:
            seconds = _seconds_until(given)
        if 0 <= seconds < math.inf:
            return seconds
    return None


def _seconds_until(date: str) -> float:
    """Return the seconds until an HTTP date, NaN if the text is none."""
    try:
        return (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):  # TypeError: a date without a time zone
        return math.nan
