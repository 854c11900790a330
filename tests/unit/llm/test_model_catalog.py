"""Limits and prices of models, retries and lenient JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.errors import ModelOverloaded, ModelUnreachable
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelLimits
from internal.config.llm import LlmSettings, PriceSettings
from internal.llm.errors import retry_after
from internal.llm.lenient_json import decode_json, encode_json, one_line
from internal.llm.model_catalog import make_model_book, model_limits
from internal.llm.registry import PROVIDERS
from internal.llm.retry import RetryPolicy
from internal.llm.stream_reader import EventDataReader

MUCH = LlmSettings(context_window=10_000_000, max_output_tokens=1_000_000)


@pytest.mark.parametrize(
    ("model", "context", "output"),
    [
        ("claude-opus-5-5", 1_000_000, 128_000),
        ("claude-opus-4-5-20251101", 200_000, 64_000),
        ("claude-haiku-4-5", 200_000, 64_000),
        ("claude-something-new", 200_000, 64_000),
        ("gpt-6-sol-2026-09-22", 1_050_000, 128_000),
        ("doubao-seed-1-8-251228", 256_000, 1_000_000),
        ("gpt-oss:20b", 10_000_000, 1_000_000),
        ("gpt-x", 10_000_000, 1_000_000),
    ],
)
def test_a_known_model_gets_no_more_than_it_can_take(model: str, context: int, output: int) -> None:
    assert model_limits(model, MUCH) == ModelLimits(context, output)


def test_settings_may_want_less() -> None:
    little = LlmSettings(context_window=1_000, max_output_tokens=100)
    assert model_limits("claude-opus-5-5", little) == ModelLimits(1_000, 100)


def test_costs_follow_the_longest_known_name_and_settings_first() -> None:
    own = {"claude-opus-5": PriceSettings(input=1.0, output=1.0)}
    table = make_model_book(LlmSettings(prices=own)).prices
    million = Usage(input_tokens=1_000_000, cache_read_tokens=1_000_000)
    assert table.cost("claude-opus-5-5-20260922", million) == pytest.approx(4.2)
    assert table.cost("claude-opus-5", million) == pytest.approx(1.0)
    assert table.cost("claude-sonnet-4-5", million) == pytest.approx(3.3)
    assert table.cost("gpt-6-sol", million) == pytest.approx(2.2)
    assert table.cost("deepseek-flash", million) == pytest.approx(0.306)
    assert table.cost("doubao-seed-1-8-251228", million) is None
    assert table.cost("offline-demo", million) == 0
    assert table.cost("gpt-x", million) is None


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
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@given(tries=st.integers(1, 200), chance=st.floats(0, 1, exclude_max=True))
def test_waits_stay_within_their_bounds(tries: int, chance: float) -> None:
    patience = RetryPolicy()
    assert 0.25 <= patience.wait(tries, ModelUnreachable("x"), chance) <= patience.longest_seconds
    asked = patience.wait(tries, ModelOverloaded("x", retry_after=20.0), chance)
    assert 20.0 <= asked <= patience.longest_seconds


@given(st.binary(max_size=2_000), st.lists(st.integers(1, 50), max_size=60))
def test_events_do_not_depend_on_where_chunks_end(raw: bytes, sizes: list[int]) -> None:
    at_once = EventDataReader().feed(raw)
    stream, start, found = EventDataReader(), 0, []
    for size in sizes:
        found += stream.feed(raw[start : start + size])
        start += size
    found += stream.feed(raw[start:])
    assert found == at_once


def test_events_may_have_many_lines_and_either_line_end() -> None:
    raw = b":ping\nevent: x\ndata: a\r\ndata:b\r\n\r\n\r\ndata: c\n\nretry: 1\n\ndata: never"
    assert EventDataReader().feed(raw) == [b"a\nb", b"c"]


def test_a_line_without_end_is_given_up() -> None:
    stream = EventDataReader()
    for _ in range(8):
        assert stream.feed(b"x" * 1_000_000) == []
    with pytest.raises(ModelUnreachable):
        stream.feed(b"x" * 1_000_000)


surrogates = st.text(st.characters(categories=["L", "Cs", "Cc"]), max_size=50)


@given(st.dictionaries(surrogates, st.one_of(surrogates, st.lists(surrogates), st.integers())))
def test_any_text_can_be_sent(value: dict[str, object]) -> None:
    assert encode_json(value)


@given(surrogates)
def test_one_line_is_short_and_can_be_encoded(text: str) -> None:
    assert len(one_line(text, 20).encode()) <= 80
    assert len(one_line(text, 20)) <= 20


def test_lenient_json() -> None:
    assert decode_json(b'{"a": "\xff\\ud800\x01"}') == {"a": "\ufffd\ufffd\x01"}
    with pytest.raises(ValueError, match="Expecting"):
        decode_json(b"{nonsense")


def test_every_default_model_is_known_and_no_name_is_listed_twice() -> None:
    names = [info.name for provider in PROVIDERS for info in provider.models]
    assert len(names) == len(set(names))
    for provider in PROVIDERS:
        mine = [info.name for info in provider.models]
        assert any(provider.default_model.startswith(name) for name in mine), provider.name
