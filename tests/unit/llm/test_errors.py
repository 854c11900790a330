"""Error responses of providers as error types."""

import pytest

from internal.agent.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
    ModelWithoutCredit,
)
from internal.llm.errors import (
    ProviderInfo,
    invalid_key_error,
    missing_key_error,
)
from internal.llm.refusals.errors import error_from_body

PEER = ProviderInfo("Acme", "ACME_API_KEY")


@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (400, "prompt is too long: 9 tokens", "", ContextTooLong),
        (400, "no", "context_length_exceeded", ContextTooLong),
        (400, "输入内容过长", "", ContextTooLong),
        (413, "no", "", ContextTooLong),
        (429, "tokens per minute: context length", "", ModelOverloaded),
        (429, "no", "insufficient_quota", ModelWithoutCredit),
        (402, "no", "", ModelWithoutCredit),
        (400, "余额不足", "", ModelWithoutCredit),
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
    error = error_from_body(PEER, status, {"message": message, "code": code})
    assert type(error) is kind
    assert str(error).startswith("Acme ")


def test_an_overloaded_provider_says_how_long_to_wait() -> None:
    error = error_from_body(PEER, 429, "slow down", {"retry-after": "2.5"})
    assert isinstance(error, ModelOverloaded)
    assert error.retry_after == 2.5


def test_the_message_of_a_provider_is_one_short_line() -> None:
    text = str(error_from_body(PEER, 400, "a\n\x1b[31m" + "b" * 5000))
    assert len(text) < 600
    assert text.isprintable()


def test_a_key_error_names_the_variable_or_the_setting() -> None:
    assert "ACME_API_KEY" in str(missing_key_error(PEER))
    assert "ACME_API_KEY" in str(invalid_key_error(PEER))
    assert "llm.api_key" in str(invalid_key_error(PEER._replace(key_name=None)))


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        (
            "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens",
            64_000,
        ),
        ("max_tokens is too large: 128000. This model supports at most 16384 tokens", 16_384),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8_192),
        ("`max_tokens` must be less than or equal to `4096`, the maximum value", 4_096),
        ("Range of max_tokens should be [1, 65536]", 65_536),
        ("max_completion_tokens must be <= 32768", 32_768),
        ("use max_completion_tokens instead of max_tokens", None),
        ("input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000", None),
        ("prompt is too long: 9 tokens > 8 maximum", None),
    ],
)
def test_rejected_output_limit_is_read_from_the_message(message: str, limit: int | None) -> None:
    refusal = error_from_body(PEER, 400, message).refusal
    assert refusal is not None
    assert (refusal.limit if refusal.kind == "output_limit" else None) == limit


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("temperature must be at most 1", ": temperature must be at most 1"),
        ("See https://x.test/a?b=c for help (request id: req_01AbC)", ": See for help"),
        ('{"error": {"type": "x"}}', "."),
        ("<html>Bad Gateway</html>", "."),
        ("Traceback (most recent call last):\n  File x", "."),
        ("Error code: 429 - {'error': {'message': 'x'}}", "."),
        ("openai.BadRequestError: Acme_ChatException - no such model", ": no such model"),
        (
            "Limit in organization org-Ab12 (d9428888-122b-11e1-b85c-61cd3cbb3210)",
            ": Limit in organization",
        ),
        ("", ": it gave no reason"),
    ],
)
def test_only_readable_words_of_a_provider_are_shown(message: str, shown: str) -> None:
    error = error_from_body(PEER, 400, message)
    assert str(error) == f"Acme rejected the request (400){shown}"
    assert " ".join(message.split()) in error.detail
