"""Usage, prices and limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.usage import Price, PriceTable, RunLimits, Usage

usages = st.builds(Usage, *[st.integers(0, 10**9)] * 4)
TABLE = PriceTable(
    {
        "claude-x": Price(3.0, 15.0, 0.3, 3.75),
        "claude-x-5": Price(4.0, 20.0),
        "claude-x-5-5": Price(5.0, 25.0),
        "offline-": Price(0.0, 0.0),
    }
)


@given(usages, usages, usages)
def test_usage_is_summed_by_kind(one: Usage, two: Usage, three: Usage) -> None:
    assert one + Usage() == one
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert (one + two).total == one.total + two.total


def test_each_kind_of_token_has_its_price() -> None:
    price = Price(input=1.0, output=10.0, cache_read=100.0, cache_write=1000.0)
    assert price.cost(Usage(1, 0, 0, 0)) == pytest.approx(0.000_001)
    assert price.cost(Usage(1, 2, 3, 4)) == pytest.approx(0.004_321)
    assert price.cost(Usage()) == 0
    assert Price(1.0, 1.0).cost(Usage(0, 0, 5, 5)) == 0


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-x", "claude-x"),
        ("claude-x-20260101", "claude-x"),
        ("claude-x:latest", "claude-x"),
        ("claude-x@eu", "claude-x"),
        ("claude-x-5", "claude-x-5"),
        ("claude-x-5-20260101", "claude-x-5"),
        ("claude-x-5-5-20260101", "claude-x-5-5"),
        ("claude-x-55", "claude-x"),
        ("claude-xl", None),
        ("claude", None),
        ("my-claude-x", None),
        ("", None),
        ("offline-demo", "offline-"),
        ("offline", None),
    ],
)
def test_a_model_is_priced_by_the_longest_matching_prefix(model: str, known: str | None) -> None:
    price = None if known is None else TABLE.prices[known]
    assert TABLE.price(model) == price
    used = Usage(1_000_000, 1_000_000)
    assert TABLE.cost(model, used) == (None if price is None else price.cost(used))


def test_without_prices_the_cost_is_unknown() -> None:
    assert PriceTable().cost("claude-x", Usage(1, 1)) is None


def test_limits_have_defaults() -> None:
    assert RunLimits() == RunLimits(60, None, 1800.0, 6)
