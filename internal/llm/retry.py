"""The only layer that tries again: backoff, starting over, and the fallbacks in their order."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from internal.agent.domain.errors import ModelOverloaded, ModelUnreachable
from internal.agent.ports.llm import (
    ModelClient,
    ModelRequest,
    ModelStreamEvent,
    StreamRestarted,
    TextDelta,
)

_log = logging.getLogger(__name__)


class ProviderClient(ModelClient, Protocol):
    """A client of one provider, as this room makes them."""

    def check_key(self) -> None:
        """Raise ModelKeyRefused when no call could succeed."""
        ...

    def warm(self) -> None:
        """Begin with what takes long, such as importing an SDK."""
        ...


@dataclass(frozen=True)
class Route:
    """A model and the way to it. Without a name the model is the one that the request asks for."""

    client: ProviderClient
    model: str = ""


@dataclass(frozen=True)
class RetryPolicy:
    """How long to go on with one route.

    Before the first words of a reply a call is tried again `retries` times, after growing waits of
    `first_seconds`, twice that, … up to `longest_seconds`, also when a provider asks for more.
    A reply that broke off after its first words is begun anew once.
    """

    retries: int = 4
    first_seconds: float = 0.5
    longest_seconds: float = 30.0

    def wait(self, tries: int, error: ModelOverloaded | ModelUnreachable, chance: float) -> float:
        """Return the seconds to wait after that many failed tries. `chance` lies in [0, 1)."""
        asked = error.retry_after if isinstance(error, ModelOverloaded) else None
        grown = self.first_seconds * 2.0 ** min(tries - 1, 16)
        # half of it fixed, half of it chance: many runs that failed together come back apart
        return min(max(grown * (0.5 + chance / 2), asked or 0.0), self.longest_seconds)


class _Tries:
    """What happened on one route so far."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._failed = 0
        self._restarts = 0

    def wait(self, error: ModelOverloaded | ModelUnreachable, *, said: bool) -> float | None:
        """Return the seconds to wait before the next try, None when it is time to give up."""
        self._failed += 1
        self._restarts += said
        if self._restarts > 1 or self._failed - self._restarts > self._policy.retries:
            return None
        return self._policy.wait(self._failed, error, random.random())  # noqa: S311  # no secret


class RetryingModel:
    """A primary model and its fallbacks as one ModelClient. Never silent about a change of model.

    At most `concurrency` calls are under way at once; a call that waits for its next try holds no
    place. Only ModelBusy and ModelUnreachable are tried again or handed to the next route.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        *,
        policy: RetryPolicy | None = None,
        concurrency: int = 16,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.provider = routes[0].client.provider
        self._routes = tuple(routes)
        self._policy = policy or RetryPolicy()
        self._places = asyncio.Semaphore(concurrency)
        self._sleep = sleep

    def check_key(self) -> None:
        """Raise ModelKeyRefused when a key is missing, that of a fallback included."""
        for route in self._routes:
            route.client.check_key()

    def warm(self) -> None:
        """Begin with what takes long, such as importing an SDK."""
        self._routes[0].client.warm()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the reply as it comes, then one Reply. The port says what is raised."""
        last = len(self._routes) - 1
        for n, route in enumerate(self._routes):
            asked = replace(request, model=route.model) if route.model else request
            try:
                async with aclosing(self._insist(route, asked)) as pieces:
                    async for piece in pieces:
                        yield piece
            except _GaveUp as end:
                if n == last:
                    raise end.error from end.error.__cause__
                fallback = self._routes[n + 1].model or request.model
                fields = {"model": asked.model, "fallback": fallback, "error": str(end.error)}
                _log.warning("model given up, falling back", extra=fields)
                if end.said:
                    yield StreamRestarted(f"{end.error} Falling back to {fallback}.")
            else:
                return

    async def close(self) -> None:
        """Close every client. None can be used afterwards."""
        for client in dict.fromkeys(route.client for route in self._routes):
            await client.close()

    async def _insist(
        self, route: Route, request: ModelRequest
    ) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the reply of one route, with as many tries as it takes.

        Raises:
            _GaveUp: the route cannot do it now.
        """
        tries = _Tries(self._policy)
        while True:
            said = False
            try:
                async with self._places, aclosing(route.client.stream(request)) as pieces:
                    async for piece in pieces:
                        said = said or isinstance(piece, TextDelta)
                        yield piece
            except (ModelOverloaded, ModelUnreachable) as error:
                seconds = tries.wait(error, said=said)
                if seconds is None:
                    raise _GaveUp(error, said=said) from error
                fields = {"model": request.model, "seconds": seconds, "error": str(error)}
                failure = str(error)
            else:
                return
            _log.info("model call failed, trying again", extra=fields)
            if said:
                yield StreamRestarted(failure)
            await self._sleep(seconds)


class _GaveUp(Exception):
    """Carries the last error of a route to where the next one begins."""

    def __init__(self, error: ModelOverloaded | ModelUnreachable, *, said: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.said = said
