"""Time zones by their names, and times of day in them."""

from datetime import UTC, datetime, timedelta

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def check_time_zone(name: str) -> str:
    """Return the name of a time zone, such as Asia/Shanghai.

    Raises:
        ValueError: there is no such zone.
    """
    from zoneinfo import ZoneInfo  # noqa: PLC0415  # costs the terminal an import

    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise ValueError(f"{name[:60]!r} is no time zone, such as Asia/Shanghai") from error
    return name


def in_zone(moment: datetime, name: str = "") -> datetime:
    """Return a moment in a zone; "" is the zone of this process."""
    if not name:
        return moment.astimezone()
    from zoneinfo import ZoneInfo  # noqa: PLC0415  # costs the terminal an import

    return moment.astimezone(ZoneInfo(name))


def describe_date(moment: datetime, name: str = "") -> str:
    """Return the date with its weekday and zone, the same text for the whole day there.

    A zone without a name is shown as its difference to UTC at the beginning of the day.
    """
    there = in_zone(moment, name)
    zone = name
    if not zone:
        begin = there.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        zone = "UTC" + (begin.astimezone().isoformat()[-6:] if there.utcoffset() else "")
    return f"{there:%Y-%m-%d}, {_DAYS[there.weekday()]} (time zone {zone})"


def format_minute(instant: str, name: str = "") -> str:
    """Return an RFC 3339 instant as a local time, such as 2026-01-31 08:00.

    A text that is not an instant is returned unchanged.
    """
    try:
        return f"{in_zone(datetime.fromisoformat(instant), name):%Y-%m-%d %H:%M}"
    except ValueError:
        return instant


def format_moment(instant: str, name: str = "") -> str:
    """Return an RFC 3339 instant as `format_minute` does; UTC, where few people live, is named."""
    shown = format_minute(instant, name)
    if shown == instant:
        return instant
    return shown + _zone_mark(in_zone(datetime.fromisoformat(instant), name))


def format_daily_reset(now: datetime, name: str = "") -> str:
    """Return the local time of day at which the next day of UTC begins, with which limits reset."""
    begin = (now.astimezone(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0)
    there = in_zone(begin, name)
    return f"{there:%H:%M}{_zone_mark(there)}"


def _zone_mark(moment: datetime) -> str:
    return " UTC" if moment.tzname() == "UTC" else ""
