"""Progress: the output of a running tool, shown while it comes, in a pace that eyes can follow."""

import asyncio

from internal.agent.app.stream import SerializingEventListener
from internal.agent.domain.events import ToolProgress

PACE_SECONDS = 0.05
MOST_CHARACTERS = 200_000
"""So much of one call is shown live; its result has the tail anyway."""


class Progress:
    """Collects the output of one call and shows it joined, at most 20 times a second."""

    def __init__(self, stream: SerializingEventListener, call_id: str) -> None:
        self._stream = stream
        self._call_id = call_id
        self._k = 0
        self._shown = 0
        self._pieces: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Take the next output in. Past the limit it is counted no more."""
        if not text or self._shown > MOST_CHARACTERS:
            return
        self._pieces.append(text[:MOST_CHARACTERS])
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(PACE_SECONDS if self._k else 0, self._show)

    def close(self) -> None:
        """Show what is left; nothing is shown afterwards."""
        if self._timer is not None:
            self._timer.cancel()
            self._show()
        self._shown = MOST_CHARACTERS + 1

    def _show(self) -> None:
        self._timer = None
        joined, pieces = "".join(self._pieces), len(self._pieces)
        self._pieces.clear()
        self._k += pieces
        self._shown += len(joined)
        text = joined[-MOST_CHARACTERS // 8 :]
        # one that finds no room is lost: its watchers see a hole in k and wait for the result
        self._stream.offer(ToolProgress(node_id=self._call_id, k=self._k, n=pieces, text=text))
