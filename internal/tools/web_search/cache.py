"""Answers of web_search in memory, so that a repeated query costs nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from cachetools import TTLCache

from internal.agent.domain.errors import ToolError
from internal.agent.ports.runtime import Clock

MAX_ENTRIES = 256

_T = TypeVar("_T")


class CacheStatistics(NamedTuple):
    """The number of calls since the start that were answered without and with a request."""

    hits: int
    misses: int

    @property
    def hit_rate(self) -> float:
        """The share of hits, from 0 to 1; 0 before the first call."""
        return self.hits / max(self.hits + self.misses, 1)


class AnswerCache(Generic[_T]):
    """Keeps answers for `seconds`; the least recently used ones go first.

    Concurrent calls with one key share a request. Failures are not kept.
    """

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._kept: TTLCache[object, _T] = TTLCache(
            MAX_ENTRIES, seconds, timer=lambda: clock.now().timestamp()
        )
        self._under_way: dict[object, asyncio.Future[_T]] = {}
        self.statistics = CacheStatistics(0, 0)

    async def get(self, key: object, ask: Callable[[], Awaitable[_T]]) -> tuple[_T, bool]:
        """Return the answer for a key, and whether it was there without a request of this call.

        If the call whose request is shared is cancelled, another one of them asks.

        Raises:
            ToolError: as `ask` does, for all calls that share the request.
        """
        while key in self._under_way:
            shared = self._under_way[key]
            await asyncio.wait([shared])
            if not shared.cancelled():
                return self._count(shared.result()), True
        kept = self._kept.get(key)
        if kept is not None:
            return self._count(kept), True
        hits, misses = self.statistics
        self.statistics = CacheStatistics(hits, misses + 1)
        return await self._request(key, ask), False

    def _count(self, answer: _T) -> _T:
        hits, misses = self.statistics
        self.statistics = CacheStatistics(hits + 1, misses)
        return answer

    async def _request(self, key: object, ask: Callable[[], Awaitable[_T]]) -> _T:
        under_way: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._under_way[key] = under_way
        try:
            answer = await ask()
        except ToolError as error:
            under_way.set_exception(error)
            under_way.exception()  # retrieved: nobody may share it
            raise
        else:
            self._kept[key] = answer
            under_way.set_result(answer)
            return answer
        finally:
            del self._under_way[key]
            under_way.cancel()  # without effect if it is done
