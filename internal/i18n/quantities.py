"""Durations, numbers and costs as every channel shows them.

The page has the same functions in `web/src/lib/format.ts`. Both are tested with the table
`tests/support/quantities.json`.
"""

from math import floor

_MINUTE, _HOUR = 60, 3_600
_TENTHS_BELOW = 10
_DECIMAL_BELOW = 100
_THOUSAND, _ROUNDED_MILLION, _MILLION = 1_000, 999_500, 1_000_000
_CENT, _SMALLEST_COST = 0.01, 0.0001


def format_duration(seconds: float) -> str:
    """Return a duration such as 0.4s, 12s, 1m12s or 2h05m; smaller units are cut off."""
    tenths = floor(max(seconds, 0.0) * 10 + 0.5)
    if tenths < _TENTHS_BELOW * 10:
        return f"{tenths // 10}.{tenths % 10}s"
    whole = max(floor(seconds), _TENTHS_BELOW)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"


def format_count(count: int) -> str:
    """Return a number in short form: 950, 12.4k, 128k, 3.1M."""
    if count < _THOUSAND:
        return str(count)
    if count < _ROUNDED_MILLION:
        return f"{_short(count / _THOUSAND)}k"
    return f"{_short(count / _MILLION)}M"


def _short(value: float) -> str:
    """Return a number with one decimal below 100, if it is not 0."""
    tenths = floor(value * 10 + 0.5)
    if tenths >= _DECIMAL_BELOW * 10:
        return str(floor(value + 0.5))
    return f"{tenths // 10}.{tenths % 10}".removesuffix(".0")


def format_cost(dollars: float) -> str:
    """Return US dollars with two decimals, below one cent with four."""
    if dollars <= 0 or dollars >= _CENT:
        return f"${dollars:.2f}"
    return f"${dollars:.4f}" if dollars >= _SMALLEST_COST else f"<${_SMALLEST_COST:.4f}"
