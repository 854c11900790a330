"""The system clock."""

import time
from datetime import UTC, datetime


class SystemClock:
    """The `Clock` of the machine."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never decrease, for durations."""
        return time.monotonic()
