"""The clock of the machine."""

from datetime import UTC, datetime, timedelta

from internal.observability.clock import SystemClock


def test_now_is_in_utc() -> None:
    now = SystemClock().now()
    assert now.tzinfo is UTC
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=1)


def test_monotonic_never_decreases() -> None:
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(100)]
    assert readings == sorted(readings)
