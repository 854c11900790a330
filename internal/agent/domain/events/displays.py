"""Displays: where the events of a run are shown. Each event declares its own."""

from typing import Literal

Display = Literal["page", "terminal", "chat", "one_shot", "stream"]

DISPLAYS: dict[Display, str] = {
    "page": "page",
    "terminal": "terminal",
    "chat": "Lark",
    "one_shot": "`-p`",
    "stream": "JSON",
}
"""The displays and their titles. `one_shot` is what `larkspur -p` prints for people. `stream` are
SSE and `--output-format stream-json`, without `debug=1`."""


def shown_on(*displays: Display) -> frozenset[Display]:
    """Return the displays that show an event, the stream among them."""
    return frozenset({*displays, "stream"})


EVERYWHERE = frozenset(DISPLAYS)
NOWHERE = frozenset[Display]()
