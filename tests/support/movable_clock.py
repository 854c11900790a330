"""A clock that tests can set forward."""

from datetime import UTC, datetime, timedelta

from internal.observability.clock import SystemClock


class MovableClock(SystemClock):
    """The time of the system and an offset."""

    offset = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def advance(self, time: timedelta) -> None:
        self.offset += time
