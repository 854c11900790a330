"""What the agent asks of time."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The time, for stamps and for durations."""

    def now(self) -> datetime:
        """Return the time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that only rise, for durations."""
        ...
