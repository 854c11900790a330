"""Lark's rate limits, counted in sliding windows."""

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
    """Sliding-window counters. While `on` is False nothing is limited or counted."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.on = True
        self._now = now
        self._counted: defaultdict[Hashable, deque[float]] = defaultdict(deque)

    def call(self, app_id: str, api: str) -> None:
        """Count a call: 50 a second and 1,000 a minute per app and API.

        Raises:
            LarkError: The limit is exceeded; a header gives the seconds until the next call.
        """
        for seconds, most in ((1.0, MAX_API_CALLS_PER_SECOND), (60.0, MAX_API_CALLS_PER_MINUTE)):
            if wait := self._count((app_id, api, seconds), most, seconds):
                raise rate_limited(wait)

    def chat(self, chat_id: str) -> None:
        """Count a message to a chat; all bots share the chat's limit.

        Raises:
            LarkError: The limit is exceeded.
        """
        if self._count(("chat", chat_id), MAX_CHAT_MESSAGES_PER_SECOND, 1.0):
            raise chat_limited("too many messages to this chat")

    def message(self, message_id: str) -> None:
        """Count an update of a message.

        Raises:
            LarkError: The limit is exceeded.
        """
        if self._count(("message", message_id), MAX_MESSAGE_UPDATES_PER_SECOND, 1.0):
            raise chat_limited("too many updates of this message")

    def card(self, card_id: str) -> None:
        """Count an operation on a CardKit card.

        Raises:
            LarkError: The limit is exceeded.
        """
        if wait := self._count(("card", card_id), MAX_CARD_OPERATIONS_PER_SECOND, 1.0):
            raise rate_limited(wait)

    def _count(self, key: Hashable, most: int, seconds: float) -> float:
        """Count one and return 0, or return the seconds until one is allowed."""
        if not self.on:
            return 0.0
        now = self._now()
        if len(self._counted) > _SWEEP:
            self._discard(now - 60)
        taken = self._counted[key]
        while taken and taken[0] <= now - seconds:
            taken.popleft()
        if len(taken) >= most:
            return taken[0] + seconds - now
        taken.append(now)
        return 0.0

    def _discard(self, before: float) -> None:
        for key in [key for key, taken in self._counted.items() if taken[-1] < before]:
            del self._counted[key]
