"""Points in time as ISO 8601 writes them."""

import re
from datetime import datetime

# the hour 24 is read since Python 3.14, a fraction without digits until 3.13
_UNUSUAL = re.compile(r"[0-9W-]{7,10}[^0-9W-]24|.*[.,](?![0-9])", re.DOTALL)


def parse_instant(text: str) -> datetime:
    """Return the time of a text such as 2026-11-24T08:30:00Z.

    Raises:
        ValueError: the text is not ISO 8601, has the hour 24, or a fraction without digits.
    """
    if _UNUSUAL.match(text):
        raise ValueError(f"Invalid isoformat string: {text!r}")
    return datetime.fromisoformat(text)
