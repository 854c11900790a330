"""Columns, numbers and JSON of commands."""

import json

import pytest

from internal.channels.cli.command_output import (
    CommandOutput,
    count_columns,
    format_columns,
    format_cost,
    format_duration,
    format_tokens,
    one_line,
)
from internal.channels.cli.output import Output


def test_columns_are_aligned_also_with_wide_characters() -> None:
    assert format_columns([("你好", "a"), ("x", "b")]) == ["你好  a", "x     b"]


def test_cell_is_cut_at_its_width_and_has_no_control_characters() -> None:
    assert one_line("a\n b\tc") == "a b c"
    assert one_line("你好你好", 5) == "你好…"
    assert count_columns(one_line("x" * 100)) == 60
    assert "\x1b" not in one_line("\x1b[2J")


@pytest.mark.parametrize(("count", "text"), [(950, "950"), (12_400, "12.4k"), (3_100_000, "3.1M")])
def test_tokens_in_short_form(count: int, text: str) -> None:
    assert format_tokens(count) == text


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.44, "0.4s"), (12.7, "12s"), (72, "1m12s"), (7_500, "2h05m")],
)
def test_durations(seconds: float, expected: str) -> None:
    assert format_duration(seconds) == expected


@pytest.mark.parametrize(("cost", "text"), [(0, "$0.00"), (0.0042, "$0.0042"), (1.5, "$1.50")])
def test_cost_below_a_cent_has_four_decimals(cost: float, text: str) -> None:
    assert format_cost(cost) == text


def test_json_keeps_characters(capfd: pytest.CaptureFixture[str]) -> None:
    assert CommandOutput(Output(), as_json=True).json({"name": "你好"}) == 0
    out = capfd.readouterr().out
    assert json.loads(out) == {"name": "你好"}
    assert "你好" in out
