"""Arithmetic without executing code."""

import pytest

from internal.llm.offline.arithmetic import evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6*7", "42"),
        ("2 + 3 * 4", "14"),
        ("(1+2)/4", "0.75"),
        ("2**10", "1024"),
        ("-7 // 2", "-4"),
        ("1/0", None),
        ("9**9**9", None),
        ("10**99*10**99", None),
        ("(-8)**0.5", None),
        ("__import__('os')", None),
        ("1+", None),
        ("1" * 101, None),
        ("", None),
    ],
)
def test_an_expression_is_evaluated_or_rejected(text: str, value: str | None) -> None:
    assert evaluate(text) == value
