"""What a provider's refusal means to us, whoever it is and whatever words it found for it."""

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

# One line a provider or server, because none of them says it like another.
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
    """Who is spoken to: its name, and the variable that its key comes from, if it needs one."""

    name: str
    key_name: str | None


def key_missing(peer: ProviderInfo) -> ModelKeyRejected:
    """The sentence for a missing key."""
    return ModelKeyRejected(
        f"No key for {peer.name}: set {peer.key_name} or llm.api_key, or use the offline demo "
        "model with llm.provider: offline."
    )


def key_unusable(peer: ProviderInfo) -> ModelKeyRejected:
    """The sentence for a key that cannot stand in a request."""
    return ModelKeyRejected(f"The key in {_key(peer)} has characters that no key has.")


def error_of_status(
    peer: ProviderInfo,
    status: int,
    message: str,
    *,
    code: str = "",
    retry_after: float | None = None,
) -> ModelError:
    """Return our error for an HTTP status, the provider's message, and its code if it has codes."""
    said = one_line(message)
    if status == HTTPStatus.PAYMENT_REQUIRED or _NO_CREDIT.search(f"{code} {said}"):
        return ModelRejected(f"{peer.name} says that the account has no credit left: {said}")
    if status in _MAY_BE_LENGTH and _TOO_LONG.search(f"{code} {said}"):
        return _too_long(peer, said)
    if status == HTTPStatus.FORBIDDEN and _FLAGGED.search(said):
        return _rejected(peer, status, said)
    return _by_status(peer, status, said, retry_after)


def _by_status(peer: ProviderInfo, status: int, said: str, retry_after: float | None) -> ModelError:
    if status in {401, 403}:
        return ModelKeyRejected(f"{peer.name} refused the key in {_key(peer)}: {said}")
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return _too_long(peer, said)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return ModelOverloaded(f"{peer.name} limits the rate of requests: {said}", retry_after)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ModelOverloaded(f"{peer.name} cannot answer now ({status}): {said}", retry_after)
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return ModelUnreachable(f"{peer.name} did not get the whole request in time: {said}")
    return _rejected(peer, status, said)


def _too_long(peer: ProviderInfo, said: str) -> ContextTooLong:
    return ContextTooLong(f"{peer.name} says that the request is too long: {said}")


def _rejected(peer: ProviderInfo, status: int, said: str) -> ModelRejected:
    return ModelRejected(f"{peer.name} will not take this request ({status}): {said}")


def _key(peer: ProviderInfo) -> str:
    return peer.key_name or "llm.api_key"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds that the provider asks for, None when it says none we can read."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):  # a date: we have no use for a clock here
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None
