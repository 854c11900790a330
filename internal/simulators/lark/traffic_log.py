"""The traffic log: every frame and call, with times and without secrets."""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from internal.simulators.lark.clock import SimClock

MAX_ENTRIES = 5_000
MAX_LOGGED_CHARACTERS = 16_000
HIDDEN = "•••"
_FIELDS = re.compile(
    r'("(?:app_secret|AppSecret|tenant_access_token|app_access_token)"\s*:\s*")[^"]*'
    r"|((?:access_key|ticket)=)[^&\"\s]*"
)


@dataclass(frozen=True, slots=True)
class TrafficEntry:
    """An entry. `kind` is call, frame.out, frame.in, socket or note; `ms` the duration.

    `status` is a call's HTTP status; `code` is Lark's code of a call or an acknowledgement.
    """

    number: int
    at_ms: int
    kind: str
    app_id: str
    what: str
    sent: str = ""
    got: str = ""
    status: int = 0
    code: int | None = None
    ms: float = 0.0

    def public(self) -> dict[str, Any]:
        """Return the entry as the control API returns it."""
        return asdict(self)


class TrafficLog:
    """Keeps the newest entries; secrets are removed before they are stored."""

    def __init__(self, clock: SimClock, changed: Callable[[], None]) -> None:
        self._clock = clock
        self._changed = changed
        self.number = 0
        """The number of the newest entry."""
        self.entries: deque[TrafficEntry] = deque(maxlen=MAX_ENTRIES)

    def add(self, kind: str, app_id: str, what: str, **rest: Any) -> None:
        """Append an entry; long texts are truncated."""
        self.number += 1
        for name in ("sent", "got"):
            rest[name] = _shown(rest.get(name, ""))
        at = self._clock.now_ms()
        self.entries.append(TrafficEntry(self.number, at, kind, app_id, redact(what), **rest))
        self._changed()

    def after(self, number: int) -> list[TrafficEntry]:
        """Return the entries after this number."""
        return [entry for entry in self.entries if entry.number > number]


def redact(text: str) -> str:
    """Return the text with secrets replaced."""
    return _FIELDS.sub(lambda found: (found[1] or found[2]) + HIDDEN, text)


def _shown(text: str | bytes) -> str:
    if isinstance(text, bytes):
        text = text[: 2 * MAX_LOGGED_CHARACTERS].decode("utf-8", "replace")
    text = redact(text)
    return (
        text
        if len(text) <= MAX_LOGGED_CHARACTERS
        else text[:MAX_LOGGED_CHARACTERS] + f"… ({len(text)} in all)"
    )
