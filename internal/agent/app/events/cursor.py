"""The wire id: where a watcher is in the log."""

import re
from typing import NamedTuple

from internal.agent.domain.errors import InvalidRequest


class Cursor(NamedTuple):
    """A place in a log. Written `<epoch>-<position>`; positions only rise, holes are normal."""

    epoch: str
    position: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.position}"


def parse_cursor(text: str) -> Cursor:
    """Return the cursor that a wire id names.

    Raises:
        Malformed: it is none.
    """
    match = _WIRE_ID.fullmatch(text)
    if match is None:
        raise InvalidRequest(f"“{text[:40]}” is not an event id such as k3x9ap-17.")
    return Cursor(match[1], int(match[2]))


_WIRE_ID = re.compile(r"([0-9a-z]{1,16})-([0-9]{1,18})")  # 18 digits: what every database holds
