"""Error responses of providers as error types."""

import pytest

from internal.agent.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
)
from internal.llm.errors import (
    ProviderInfo,
    error_from_status,
    invalid_key_error,
    missing_key_error,
    retry_after,
)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_seconds_or_ignored(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds


PEER = ProviderInfo("Acme", "ACME_API_KEY")


@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (400, "prompt is too long: 9 tokens", "", ContextTooLong),
        (400, "no", "context_length_exceeded", ContextTooLong),
        (400, "输入内容过长", "", ContextTooLong),
        (413, "no", "", ContextTooLong),
        (429, "tokens per minute: context length", "", ModelOverloaded),
        (429, "no", "insufficient_quota", ModelRejected),
        (402, "no", "", ModelRejected),
        (400, "余额不足", "", ModelRejected),
        (403, "input was flagged", "", ModelRejected),
        (403, "country not supported", "", ModelKeyRejected),
        (401, "no", "", ModelKeyRejected),
        (408, "no", "", ModelUnreachable),
        (503, "no", "", ModelOverloaded),
        (404, "no such model", "", ModelRejected),
    ],
)
def test_a_status_and_message_become_an_error_type(
    status: int, message: str, code: str, kind: type[ModelError]
) -> None:
    error = error_from_status(PEER, status, message, code=code)
    assert type(error) is kind
    assert str(error).startswith("Acme ")


def test_an_overloaded_provider_says_how_long_to_wait() -> None:
    error = error_from_status(PEER, 429, "slow down", retry_after=2.5)
    assert isinstance(error, ModelOverloaded)
    assert error.retry_after == 2.5


def test_the_message_of_a_provider_is_one_short_line() -> None:
    text = str(error_from_status(PEER, 400, "a\n\x1b[31m" + "b" * 5000))
    assert len(text) < 600
    assert text.isprintable()


def test_a_key_error_names_the_variable_or_the_setting() -> None:
    assert "ACME_API_KEY" in str(missing_key_error(PEER))
    assert "ACME_API_KEY" in str(invalid_key_error(PEER))
    assert "llm.api_key" in str(invalid_key_error(PEER._replace(key_name=None)))
