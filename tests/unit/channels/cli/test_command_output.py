"""Columns, numbers and JSON of commands."""

import json

import pytest

from internal.channels.cli.command_output import (
    CommandOutput,
    count_columns,
    format_columns,
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


def test_json_keeps_characters(capfd: pytest.CaptureFixture[str]) -> None:
    assert CommandOutput(Output(), as_json=True).json({"name": "你好"}) == 0
    out = capfd.readouterr().out
    assert json.loads(out) == {"name": "你好"}
    assert "你好" in out
