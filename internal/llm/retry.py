"""The only retry layer: backoff, restarted responses, and fallbacks in their order."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from internal.agent.domain.errors import ModelUnavailable
from internal.agent.ports.llm import (
    ModelClient,
    ModelRequest,
    ModelStreamEvent,
    StreamRestarted,
    TextDelta,
)

_log = logging.getLogger(__name__)


class ProviderClient(ModelClient, Protocol):
    """A client of one provider."""

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""
        ...

    def preload(self) -> None:
        """Start slow work such as importing an SDK."""
        ...


@dataclass(frozen=True)
class Route:
    """A client and the model to ask; "" is the model that the request names."""

    client: ProviderClient
    model: str = ""


@dataclass(frozen=True)
class RetryPolicy:
    """How long to keep trying one route.

    Before the first text of a response a call is retried `retries` times. The waits start at
    `first_seconds` and double up to `longest_seconds`, which also bounds a wait that the provider
    asks for. A response that broke off after its first text is restarted once.
    """

    retries: int = 4
    first_seconds: float = 0.5
    longest_seconds: float = 30.0

    def wait(self, tries: int, error: ModelUnavailable, chance: float) -> float:
        """Return the seconds to wait after `tries` failures. `chance` is in [0, 1)."""
        grown = self.first_seconds * 2.0 ** min(tries - 1, 16)
        # half fixed, half random, so that runs that failed together do not retry together
        return min(max(grown * (0.5 + chance / 2), error.retry_after or 0.0), self.longest_seconds)


class _Tries:
    """The failures on one route so far."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._failed = 0
        self._restarts = 0

    def wait(self, error: ModelUnavailable, *, said: bool) -> float | None:
        """Return the seconds to wait before the next try, or None to give up."""
        self._failed += 1
        self._restarts += said
        if self._restarts > 1 or self._failed - self._restarts > self._policy.retries:
            return None
        return self._policy.wait(self._failed, error, random.random())  # noqa: S311  # not used for security


class RetryingModel:
    """A primary model and its fallbacks as one `ModelClient`. A change of model is always reported.

    At most `concurrency` calls run at once; a call that waits for its next try does not count. Only
    `ModelUnavailable` is retried or passed to the next route.
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
        """Raise `ModelKeyRejected` if a key is missing, including those of the fallbacks."""
        for route in self._routes:
            route.client.check_key()

    def preload(self) -> None:
        """Start slow work such as importing an SDK."""
        self._routes[0].client.preload()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the response as it comes, then one `ModelResponse`. See `ModelClient.stream`."""
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
        """Yield the response of one route, retrying as the policy allows.

        Raises:
            _GaveUp: the route cannot answer now.
        """
        tries = _Tries(self._policy)
        while True:
            said = False
            try:
                async with self._places, aclosing(route.client.stream(request)) as pieces:
                    async for piece in pieces:
                        said = said or isinstance(piece, TextDelta)
                        yield piece
            except ModelUnavailable as error:
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
    """Carries the last error of a route to the next one."""

    def __init__(self, error: ModelUnavailable, *, said: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.said = said
