"""The machine's clock."""

import time
from datetime import UTC, datetime


class SystemClock:
    """Fills `Clock` with the machine's time."""

    def now(self) -> datetime:
        """Return the time of day, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that only rise, for durations."""
        return time.monotonic()
