"""Places in resources that all people share, such as the processes that read documents."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

PERSON: ContextVar[str] = ContextVar("person", default="")
"""Whose work the current task does, as `Share.person`; "" for the owner and the process itself."""


class FairSlots:
    """At most `count` places, at most half of them for one person; waiting people take turns."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._most_of_person = max(count // 2, 1)
        self._used: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By person, the one whose turn is next first."""

    @asynccontextmanager
    async def take(self) -> AsyncGenerator[None]:
        """Have a place for the length of a block, for the person of the current task."""
        person = PERSON.get()
        if person in self._waiting or not self._may_have(person):
            await self._wait(person)
        else:
            self._count(person, 1)
        try:
            yield
        finally:
            self._count(person, -1)
            self._give()

    async def _wait(self, person: str) -> None:
        given = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(person, deque()).append(given)
        try:
            await given
        except asyncio.CancelledError:
            if not given.cancelled():  # it was given meanwhile
                self._count(person, -1)
            self._give()
            raise

    def _may_have(self, person: str) -> bool:
        has_share = not person or self._used[person] < self._most_of_person
        return self._free > 0 and has_share

    def _count(self, person: str, places: int) -> None:
        self._free -= places
        self._used[person] += places
        if not self._used[person]:
            del self._used[person]

    def _give(self) -> None:
        """Give free places to waiting people; who gets one is the last next time."""
        while (person := next(filter(self._is_next, self._waiting), None)) is not None:
            waiting = self._waiting.pop(person)
            self._count(person, 1)
            waiting.popleft().set_result(None)
            if waiting:
                self._waiting[person] = waiting
        self._waiting = {person: waiting for person, waiting in self._waiting.items() if waiting}

    def _is_next(self, person: str) -> bool:
        waiting = self._waiting[person]
        while waiting and waiting[0].cancelled():
            waiting.popleft()
        return bool(waiting) and self._may_have(person)
