"""Translates error responses of all providers into the agent's error types."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

from internal.agent.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
)
from internal.llm.lenient_json import one_line

# One line per provider or server: each words it differently.
_TOO_LONG = re.compile(
    r"prompt is too long|context[ _](window|length|limit|size)"  # Anthropic, OpenAI, llama.cpp
    r"|exceeds? (the )?(maximum )?context|input tokens? exceeds?"
    r"|maximum (prompt|model) length|longer than the maximum"  # xAI, vLLM
    r"|input (length|token count)[^.]*exceed|exceed[^.]*max(imum)? (input|message|number of) "
    r"(length|tokens)|exceeded model token limit|request too large"  # Ark, Gemini, Moonshot, Groq
    r"|range of input length|reduce the length of the (messages|prompt|input)"  # Qwen
    r"|prompt exceeds max length|prompt 超长|输入(内容|文本)?(过长|超长)"  # Zhipu
    r"|must be <= \d+|context the overflows",  # Together, LM Studio
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient[ _](balance|quota|credits?|funds)|account ?overdue|credit balance is too low"
    r"|overdue balance|billing[ _]hard[ _]limit|余额不足|欠费",
    re.IGNORECASE,
)
_FLAGGED = re.compile(r"moderation|flagged|content policy", re.IGNORECASE)
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
    said = one_line(message)
    if status == HTTPStatus.PAYMENT_REQUIRED or _NO_CREDIT.search(f"{code} {said}"):
        return ModelRejected(f"{peer.name} reports that the account has no credit left: {said}")
    if status in _MAY_BE_LENGTH and _TOO_LONG.search(f"{code} {said}"):
        return _too_long(peer, said)
    if status == HTTPStatus.FORBIDDEN and _FLAGGED.search(said):
        return _rejected(peer, status, said)
    return _by_status(peer, status, said, retry_after)


def _by_status(peer: ProviderInfo, status: int, said: str, retry_after: float | None) -> ModelError:
    if status in {401, 403}:
        return ModelKeyRejected(f"{peer.name} rejected the API key in {_key(peer)}: {said}")
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return _too_long(peer, said)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return ModelOverloaded(f"{peer.name} is rate-limiting requests: {said}", retry_after)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ModelOverloaded(f"{peer.name} is unavailable ({status}): {said}", retry_after)
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return ModelUnreachable(f"{peer.name} timed out while receiving the request: {said}")
    return _rejected(peer, status, said)


def _too_long(peer: ProviderInfo, said: str) -> ContextTooLong:
    return ContextTooLong(f"{peer.name} reports that the request is too long: {said}")


def _rejected(peer: ProviderInfo, status: int, said: str) -> ModelRejected:
    return ModelRejected(f"{peer.name} rejected the request ({status}): {said}")


def _key(peer: ProviderInfo) -> str:
    return peer.key_name or "llm.api_key"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the provider asks to wait, or None if it gives no number."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):  # an HTTP date: not supported
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None
