"""The waits that servers ask for."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.errors import ModelUnavailable
from internal.llm.errors import ProviderInfo
from internal.llm.refusals.errors import error_from_body
from internal.llm.waits import MAX_WAIT_SECONDS, parse_wait, retry_after, wait_in_words

NOW = datetime(2026, 11, 28, 14, 5, 0, tzinfo=UTC)
PEER = ProviderInfo("Acme", "ACME_API_KEY")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "1m30s"}, 90.0),
        ({"retry-after": "Sat, 28 Nov 2026 14:05:30 GMT"}, 30.0),
        ({"retry-after": "Saturday, 28-Nov-26 14:05:30 GMT"}, 30.0),
        ({"retry-after": "Sat Nov 28 14:05:30 2026"}, 30.0),
        ({"retry-after": "2026-11-28T14:05:30Z"}, 30.0),
        ({"retry-after": "2026-11-28T22:05:30+08:00"}, 30.0),
        ({"retry-after": "1795874730"}, 30.0),
        ({"retry-after": "1795874730000"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "5"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1m30s",
                "x-ratelimit-remaining-tokens": "7",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            90.0,
        ),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1795874730000"}, 30.0),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, 30.0),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2026-11-28T14:05:30Z",
            },
            30.0,
        ),
    ],
)
def test_headers_say_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 20s.", 20.0),
        ("on tokens per day (TPD): Limit 1. Please try again in 7m33.6s. Visit", 453.6),
        ("Please try again in 120ms.", 0.12),
        ("Please retry in 34.07s.", 34.07),
        ("Please retry after 12 seconds.", 12.0),
        ("max RPM: 3, please try again after 1 seconds", 1.0),
        ("Please wait 5 minutes", 300.0),
        ("请 10 秒后重试", 10.0),
        ("请求过多。请在10秒之后重试", 10.0),
        ("请 2 分钟后再试", 120.0),
        ("Try again later. Limit: 20s per request", None),
        ("The tool took 20 seconds", None),
        ("", None),
    ],
)
def test_words_say_how_long_to_wait(message: str, seconds: float | None) -> None:
    assert wait_in_words(message) == seconds


@given(st.text(max_size=40))
def test_no_text_is_a_wait_without_bounds(text: str) -> None:
    waits = [parse_wait(text, NOW), wait_in_words(text), retry_after({"retry-after": text}, NOW)]
    assert all(wait is None or 0 <= wait <= MAX_WAIT_SECONDS for wait in waits)


@pytest.mark.parametrize(
    ("status", "body", "seconds"),
    [
        (429, [{"error": {"code": 429, "details": [{"retryDelay": "17s"}]}}], 17),
        (503, {"error": "Model x/y is currently loading", "estimated_time": 20.0}, 20),
        (429, {"error": {"message": "x", "metadata": {"headers": {"Retry-After": "9"}}}}, 9),
        (503, "<html><title>503 Service Unavailable</title></html>", None),
        (529, {"type": "error", "error": {"type": "overloaded_error"}}, None),
    ],
)
def test_bodies_say_how_long_to_wait(status: int, body: object, seconds: float | None) -> None:
    error = error_from_body(PEER, status, body)
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == seconds
