"""Frequency limits: so many in any window of so many seconds."""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable

from internal.simulators.lark.errors import chat_limited, rate_limited

MAX_CHAT_MESSAGES_PER_SECOND = 5
MAX_MESSAGE_UPDATES_PER_SECOND = 5
MAX_CARD_OPERATIONS_PER_SECOND = 10
MAX_API_CALLS_PER_SECOND = 50
MAX_API_CALLS_PER_MINUTE = 1_000
_SWEEP = 4_096


class RateLimits:
    """Counts in sliding windows. While `on` is False everything passes and nothing is counted."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.on = True
        self._now = now
        self._taken: defaultdict[Hashable, deque[float]] = defaultdict(deque)

    def call(self, app_id: str, api: str) -> None:
        """Count a call: 50 a second and 1,000 a minute, for each API of an app.

        Raises:
            LarkError: it is one too many; its header says in how many seconds one is free.
        """
        for seconds, most in ((1.0, MAX_API_CALLS_PER_SECOND), (60.0, MAX_API_CALLS_PER_MINUTE)):
            if wait := self._take((app_id, api, seconds), most, seconds):
                raise rate_limited(wait)

    def chat(self, chat_id: str) -> None:
        """Count a message to a chat; all bots share its limit.

        Raises:
            LarkError: it is one too many.
        """
        if self._take(("chat", chat_id), MAX_CHAT_MESSAGES_PER_SECOND, 1.0):
            raise chat_limited("too many messages to this chat")

    def message(self, message_id: str) -> None:
        """Count an update of a message.

        Raises:
            LarkError: it is one too many.
        """
        if self._take(("message", message_id), MAX_MESSAGE_UPDATES_PER_SECOND, 1.0):
            raise chat_limited("too many updates of this message")

    def card(self, card_id: str) -> None:
        """Count an operation on a CardKit card.

        Raises:
            LarkError: it is one too many.
        """
        if wait := self._take(("card", card_id), MAX_CARD_OPERATIONS_PER_SECOND, 1.0):
            raise rate_limited(wait)

    def _take(self, key: Hashable, most: int, seconds: float) -> float:
        """Take one, and return 0; or return in how many seconds one is free."""
        if not self.on:
            return 0.0
        now = self._now()
        if len(self._taken) > _SWEEP:
            self._forget(now - 60)
        taken = self._taken[key]
        while taken and taken[0] <= now - seconds:
            taken.popleft()
        if len(taken) >= most:
            return taken[0] + seconds - now
        taken.append(now)
        return 0.0

    def _forget(self, before: float) -> None:
        for key in [key for key, taken in self._taken.items() if taken[-1] < before]:
            del self._taken[key]
