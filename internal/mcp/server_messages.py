"""Errors that a server logs, which people see at the call during which they arrive."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from internal.agent.domain.text import escape_hidden, truncate_line

logger = logging.getLogger(__name__)

LOGGED_KEY = "larkspur/logged"
"""The key of a result that holds the errors which the server logged during the call."""
SHOWN_LEVEL: Literal["error"] = "error"
_SHOWN_LEVELS = frozenset({"error", "critical", "alert", "emergency"})
MAX_MESSAGES = 5
MAX_MESSAGE_CHARS = 500


class ServerMessages:
    """The errors that a server logs. They do not name their call.

    One that comes while no call runs is kept for the next one.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._waiting: list[str] = []
        self._calls: list[list[str]] = []

    def note(self, level: str, data: Any) -> None:
        """Take a message of the server; only errors are kept."""
        if level not in _SHOWN_LEVELS:
            return
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        line = truncate_line(escape_hidden(text), MAX_MESSAGE_CHARS)
        logger.warning("mcp server logged an error", extra={"server": self._server, "text": line})
        for kept in self._calls or [self._waiting]:
            if line not in kept and len(kept) < MAX_MESSAGES:
                kept.append(line)

    @contextmanager
    def during_call(self) -> Iterator[list[str]]:
        """Yield the list of the errors that are logged within the block, after earlier ones."""
        kept, self._waiting = self._waiting, []
        self._calls.append(kept)
        try:
            yield kept
        finally:
            self._calls = [each for each in self._calls if each is not kept]
