"""Durations, numbers and costs; the page is tested with the same table."""

import json
from typing import Any

import pytest

from internal.i18n.quantities import format_cost, format_count, format_duration
from tests import ROOT

TABLE: dict[str, list[tuple[Any, str]]] = json.loads(
    (ROOT / "tests" / "support" / "quantities.json").read_text()
)


@pytest.mark.parametrize(("seconds", "text"), TABLE["durations"])
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(("count", "text"), TABLE["counts"])
def test_counts(count: int, text: str) -> None:
    assert format_count(count) == text


@pytest.mark.parametrize(("dollars", "text"), TABLE["costs"])
def test_costs(dollars: float, text: str) -> None:
    assert format_cost(dollars) == text


def test_a_clock_that_was_set_back_gives_no_negative_duration() -> None:
    assert format_duration(-3.0) == "0.0s"
