"""The time zone of a process."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from internal.config.time_zone import chosen_time_zone, enter_time_zone, find_time_zone
from internal.normal_forms.time_zones import describe_date, format_minute

EVENING = datetime(2026, 11, 24, 20, 30, tzinfo=UTC)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the process its zone back."""
    monkeypatch.setenv("TZ", "UTC")
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_a_process_enters_the_zone_of_the_settings() -> None:
    enter_time_zone("Asia/Shanghai")
    assert find_time_zone() == "Asia/Shanghai"
    assert format_minute("2026-01-31T08:00:00Z") == "2026-01-31 16:00"
    enter_time_zone(None)
    assert find_time_zone() == "Asia/Shanghai"


def test_a_zone_that_has_only_rules_is_told_by_its_difference(
    monkeypatch: pytest.MonkeyPatch, zone: None
) -> None:
    monkeypatch.setenv("TZ", "CST-8")
    time.tzset()
    assert find_time_zone() == ""
    assert describe_date(EVENING) == "2026-11-25, Wednesday (time zone UTC+08:00)"


@pytest.mark.parametrize(
    ("environ", "zone"),
    [
        ({"TZ": "Europe/Berlin"}, "Europe/Berlin"),
        ({"TZ": ":UTC"}, "UTC"),
        ({"TZ": "x"}, ""),
        ({}, ""),
    ],
)
def test_a_zone_of_the_environment_is_chosen(environ: dict[str, str], zone: str) -> None:
    assert chosen_time_zone(environ) == zone
