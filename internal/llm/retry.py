"""The only retry layer: backoff, restarted responses, and fallbacks in their order."""

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

import msgspec
from msgspec.structs import replace

from internal.agent.domain.errors import (
    ModelError,
    ModelOverloaded,
    ModelRejected,
    ModelUnavailable,
)
from internal.agent.ports.llm import (
    ModelClient,
    ModelRequest,
    ModelStreamEvent,
    RetryReason,
    RetryScheduled,
    StreamRestarted,
    TextDelta,
)
from internal.llm.errors import find_output_limit
from internal.llm.reply_mask import mask_reply

RETRIES_BEFORE_FALLBACK = 4
Sleep = Callable[[float], Awaitable[None]]
"""Waits for so many seconds."""
_log = logging.getLogger(__name__)


class ProviderClient(ModelClient, Protocol):
    """A client of one provider."""

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""
        ...

    def preload(self) -> None:
        """Start slow work such as reading certificates."""
        ...


class Route(msgspec.Struct, frozen=True):
    """A client and the model to ask; "" is the model that the request names."""

    client: ProviderClient
    model: str = ""


class RetryPolicy(msgspec.Struct, frozen=True):
    """How long to keep trying one route.

    Before the first text of a response a call is retried `retries` times. The waits start at
    `first_seconds` and double up to `max_seconds`; a longer one that the provider asks for is
    waited out. A response that broke off after its first text is restarted once.
    """

    retries: int = 10
    first_seconds: float = 0.5
    max_seconds: float = 30.0

    def wait(self, tries: int, error: ModelUnavailable, chance: float) -> float:
        """Return the seconds to wait after `tries` failures. `chance` is in [0, 1)."""
        grown = min(self.first_seconds * 2.0 ** min(tries - 1, 16), self.max_seconds)
        # half fixed, half random, so that runs that failed together do not retry together
        return max(grown * (0.5 + chance / 2), error.retry_after or 0.0)

    def before_fallback(self) -> "RetryPolicy":
        """Return the policy of a route that another one follows: that one is tried sooner."""
        return replace(self, retries=min(self.retries, RETRIES_BEFORE_FALLBACK))


class _Tries:
    """The failures on one route so far. No wait is longer than `max_wait` seconds."""

    def __init__(self, policy: RetryPolicy, max_wait: float) -> None:
        self._policy, self._max_wait = policy, max_wait
        self._failed = 0
        self._restarts = 0

    def next(self, error: ModelUnavailable, *, has_text: bool) -> RetryScheduled | None:
        """Return the next try, or None to give up."""
        self._failed += 1
        self._restarts += has_text
        if self._restarts > 1 or self._failed - self._restarts > self._policy.retries:
            return None
        seconds = self._policy.wait(self._failed, error, random.random())  # noqa: S311  # not used for security
        if seconds > self._max_wait:
            return None
        reason: RetryReason = "overloaded" if isinstance(error, ModelOverloaded) else "unreachable"
        return RetryScheduled(reason, seconds, self._failed + 1)


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
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.provider = routes[0].client.provider
        self._routes = tuple(routes)
        self._policy = policy or RetryPolicy()
        self._places = asyncio.Semaphore(concurrency)
        self._sleep = sleep
        self._output_limits: dict[str, int] = {}

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a key is missing, including those of the fallbacks."""
        for route in self._routes:
            route.client.check_key()

    def preload(self) -> None:
        """Start slow work such as reading certificates."""
        self._routes[0].client.preload()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the response as it comes, then one `ModelResponse`. See `ModelClient.stream`."""
        last = len(self._routes) - 1
        for n, route in enumerate(self._routes):
            asked = replace(request, model=route.model) if route.model else request
            policy = self._policy if n == last else self._policy.before_fallback()
            try:
                async with aclosing(self._stream_route(route, asked, policy)) as pieces:
                    async for piece in pieces:
                        yield piece
            except _RouteFailed as end:
                if n == last:
                    raise end.error from end.error.__cause__
                fallback = self._routes[n + 1].model or request.model
                fields = {"model": asked.model, "fallback": fallback, "error": str(end.error)}
                _log.warning("model given up, falling back", extra=fields)
                if end.has_text:
                    yield StreamRestarted(f"{end.error} Falling back to {fallback}.")
            else:
                return

    async def close(self) -> None:
        """Close every client. None can be used afterwards."""
        for client in dict.fromkeys(route.client for route in self._routes):
            await client.close()

    async def _stream_route(
        self, route: Route, request: ModelRequest, policy: RetryPolicy
    ) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the response of one route, retrying as the policy allows.

        Raises:
            _RouteFailed: the route cannot answer now.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + request.patience_seconds
        tries = _Tries(policy, math.inf if policy is self._policy else policy.max_seconds)
        while True:
            has_text = False
            asked = self._within_limit(request)
            try:
                stream = mask_reply(route.client.stream(asked))
                async with self._places, aclosing(stream) as pieces:
                    async for piece in pieces:
                        has_text = has_text or isinstance(piece, TextDelta)
                        yield piece
            except ModelUnavailable as error:
                again = tries.next(error, has_text=has_text)
                _log_failure(request, error, again)
                if again is None or clock() + again.seconds > deadline:
                    raise _RouteFailed(error, has_text=has_text) from error
                failure = str(error)
            except ModelRejected as error:
                _log_failure(request, error)
                if not self._learn_limit(asked, error):
                    raise
                continue
            except ModelError as error:
                _log_failure(request, error)
                raise
            else:
                return
            if has_text:
                yield StreamRestarted(failure)
            yield again
            await self._sleep(again.seconds)

    def _within_limit(self, request: ModelRequest) -> ModelRequest:
        limit = self._output_limits.get(request.model, request.max_output_tokens)
        return replace(request, max_output_tokens=min(limit, request.max_output_tokens))

    def _learn_limit(self, request: ModelRequest, error: ModelRejected) -> bool:
        """Store the output limit that an error names; False if the request was within it."""
        limit = find_output_limit(error)
        if limit is None or not 0 < limit < request.max_output_tokens:
            return False
        self._output_limits[request.model] = limit
        return True


def _log_failure(
    request: ModelRequest, error: ModelError, again: RetryScheduled | None = None
) -> None:
    fields = {"model": request.model, "error": str(error), "detail": error.detail}
    if again is None:
        _log.warning("model call failed", extra=fields)
    else:
        fields["seconds"] = f"{again.seconds:.1f}"
        _log.info("model call failed, trying again", extra=fields)


class _RouteFailed(Exception):
    """Carries the last error of a route to the next one."""

    def __init__(self, error: ModelUnavailable, *, has_text: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.has_text = has_text
