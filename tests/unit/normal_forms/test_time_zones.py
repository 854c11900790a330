"""Dates and times where people are."""

from datetime import UTC, datetime, timedelta

import pytest

from internal.normal_forms.time_zones import (
    check_time_zone,
    describe_date,
    format_daily_reset,
    format_minute,
    format_moment,
)

EVENING = datetime(2026, 11, 24, 20, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "date"),
    [
        ("Asia/Shanghai", "2026-11-25, Wednesday (time zone Asia/Shanghai)"),
        ("America/Los_Angeles", "2026-11-24, Tuesday (time zone America/Los_Angeles)"),
        ("Pacific/Kiritimati", "2026-11-25, Wednesday (time zone Pacific/Kiritimati)"),
        ("UTC", "2026-11-24, Tuesday (time zone UTC)"),
    ],
)
def test_a_date_is_that_of_the_zone_with_its_weekday(zone: str, date: str) -> None:
    assert describe_date(EVENING, zone) == date


@pytest.mark.parametrize("day", [(2026, 3, 29), (2026, 10, 25), (2026, 6, 1)])
def test_a_day_has_one_text_also_when_clocks_change(day: tuple[int, int, int]) -> None:
    midnight = datetime(*day, tzinfo=UTC) - timedelta(hours=3)
    texts = [
        describe_date(midnight + timedelta(minutes=30 * at), "Europe/Berlin") for at in range(60)
    ]
    today = [text for text in texts if text.startswith("{}-{:02}-{:02}".format(*day))]
    assert len(set(today)) == 1
    assert len(set(texts)) <= 3
    assert texts == sorted(texts)


@pytest.mark.parametrize(
    "name", ["", "Shanghai", "../etc/passwd", "/etc/localtime", "UTC+8", "a" * 500]
)
def test_names_of_no_zone_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no time zone, such as Asia/Shanghai"):
        check_time_zone(name)


def test_instants_are_shown_where_people_are() -> None:
    assert format_minute("2026-01-31T08:00:00.000Z", "Asia/Shanghai") == "2026-01-31 16:00"
    assert format_moment("2026-01-31T08:00:00Z", "Asia/Shanghai") == "2026-01-31 16:00"
    assert format_moment("2026-01-31T08:00:00Z", "UTC") == "2026-01-31 08:00 UTC"
    assert format_moment("") == ""
    assert format_daily_reset(EVENING, "Asia/Shanghai") == "08:00"
    assert format_daily_reset(EVENING, "UTC") == "00:00 UTC"
