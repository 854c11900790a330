"""The only retry layer: backoff, restarted responses, and fallbacks in their order."""

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
from msgspec.structs import replace

from internal.agent.domain.errors import (
    ModelError,
    ModelOverloaded,
    ModelRejected,
    ModelUnavailable,
    RefusalKind,
)
from internal.agent.domain.text import truncate_line
from internal.agent.ports.fair_slots import FairSlots
from internal.agent.ports.llm import (
    ModelClient,
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    RetryReason,
    RetryScheduled,
    StreamRestarted,
    TextDelta,
)
from internal.llm.reply_mask import mask_reply

RETRIES_BEFORE_FALLBACK = 4
MAX_LOADING_SECONDS = 900.0
"""The longest wait for a model that is being loaded, beside the retries of the policy."""
MIN_TOLD_SECONDS = 10.0
"""The shortest wait of which the error tells the end if it is not waited out."""
_FALLBACK_KINDS: frozenset[RefusalKind] = frozenset(
    {"content_filter", "quota", "no_credit", "no_model", "region"}
)
"""Refusals that another model may not share. Waiting helps with none of them."""
_REASONS: dict[RefusalKind, RetryReason] = {"rate": "rate_limited", "loading": "loading"}
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

    def origin(self, request: ModelRequest) -> str:
        """Return the provider and the model that get a request, as in `Message.origin`."""
        return f"{self.client.provider}:{self.model or request.model}"


class RetryPolicy(msgspec.Struct, frozen=True):
    """Limits of the retries on one route.

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


MAX_CAUSE_CHARACTERS = 300
"""Of the error that a retry names."""


class _Tries:
    """The failures on one route so far. No wait is longer than `max_wait` seconds.

    A model that is being loaded is waited for up to `loading_seconds` without counting the tries.
    """

    def __init__(self, policy: RetryPolicy, max_wait: float, loading_seconds: float) -> None:
        self._policy, self._max_wait = policy, max_wait
        self._loading_seconds = loading_seconds
        self._failed = 0
        self._restarts = 0
        self._loading = 0

    def next(self, error: ModelUnavailable, *, has_text: bool) -> RetryScheduled | None:
        """Return the next try, or None to give up."""
        self._failed += 1
        self._restarts += has_text
        seconds = self._policy.wait(self._failed, error, random.random())  # noqa: S311  # not used for security
        if _kind(error) == "loading" and seconds <= self._loading_seconds:
            self._loading += 1
            self._loading_seconds -= seconds
        counted = self._failed - self._restarts - self._loading
        if self._restarts > 1 or counted > self._policy.retries or seconds > self._max_wait:
            return None
        # repetitions that do not count come on top
        attempts = self._policy.retries + 1 + self._restarts + self._loading
        is_counted = _kind(error) != "loading"
        return RetryScheduled(
            _reason(error),
            seconds,
            self._failed + 1,
            attempts if is_counted else 0,
            truncate_line(str(error), MAX_CAUSE_CHARACTERS),
        )


def _kind(error: ModelError) -> RefusalKind:
    return "unknown" if error.refusal is None else error.refusal.kind


def _reason(error: ModelUnavailable) -> RetryReason:
    known = _REASONS.get(_kind(error))
    if known is not None:
        return known
    return "overloaded" if isinstance(error, ModelOverloaded) else "unreachable"


class RetryingModel:
    """A primary model and its fallbacks as one `ModelClient`. A change of model is always reported.

    At most `concurrency` calls run at once, shared between people as `FairSlots` says; a call that
    waits for its next try does not count. Only `ModelUnavailable` is retried. What is passed to the
    next route as well are refusals that another model may not share, such as of a content filter,
    or of an account without credit.
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
        self._places = FairSlots(concurrency)
        self._sleep = sleep

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a key is missing, also one of a fallback."""
        for route in self._routes:
            route.client.check_key()

    def preload(self) -> None:
        """Start slow work such as reading certificates."""
        self._routes[0].client.preload()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the response as it comes, then one `ModelResponse`. See `ModelClient.stream`.

        The route of `request.origin` is asked first, then the later routes, then the earlier ones.
        """
        primary = self._routes[0]
        routes = self._routes_from(request)
        for n, route in enumerate(routes):
            origin = route.origin(request)
            asked = replace(request, model=route.model or request.model, origin=origin)
            following = routes[n + 1] if n + 1 < len(routes) else None
            policy = self._policy if following is None else self._policy.before_fallback()
            instead_of = "" if route is primary else primary.model or request.model
            try:
                async with aclosing(self._stream_route(route, asked, policy)) as pieces:
                    async for piece in pieces:
                        yield _with_route(piece, origin, instead_of=instead_of)
            except _RouteFailed as end:
                if following is None or not _may_fall_back(end.error):
                    raise end.error from end.error.__cause__
                fallback = following.model or request.model
                fields = {"model": asked.model, "fallback": fallback, "error": str(end.error)}
                _log.warning("model given up, falling back", extra=fields)
                if end.has_text:
                    yield StreamRestarted(f"{end.error} Falling back to {fallback}.")
            else:
                return

    def _routes_from(self, request: ModelRequest) -> tuple[Route, ...]:
        origins = [route.origin(request) for route in self._routes]
        start = origins.index(request.origin) if request.origin in origins else 0
        return (*self._routes[start:], *self._routes[:start])

    async def close(self) -> None:
        """Close every client. None can be used afterwards."""
        for client in dict.fromkeys(route.client for route in self._routes):
            await client.close()

    async def _stream_route(
        self, route: Route, request: ModelRequest, policy: RetryPolicy
    ) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the response of one route, retrying as the policy allows.

        Raises:
            _RouteFailed: the route cannot answer now, or rejects the request.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + request.patience_seconds
        is_last = policy is self._policy
        max_wait = math.inf if is_last else policy.max_seconds
        tries = _Tries(policy, max_wait, MAX_LOADING_SECONDS if is_last else 0.0)
        while True:
            has_text = False
            try:
                stream = mask_reply(route.client.stream(request))
                async with self._places.take(), aclosing(stream) as pieces:
                    async for piece in pieces:
                        has_text = has_text or isinstance(piece, TextDelta)
                        yield piece
            except ModelUnavailable as error:
                again = tries.next(error, has_text=has_text)
                _log_failure(request, error, again)
                if again is None or clock() + again.seconds > deadline:
                    raise _RouteFailed(_with_end(error), has_text=has_text) from error
                failure = str(error)
            except ModelRejected as error:
                _log_failure(request, error)
                raise _RouteFailed(error, has_text=has_text) from error
            except ModelError as error:
                _log_failure(request, error)
                raise
            else:
                return
            if has_text:
                yield StreamRestarted(failure)
            yield again
            await self._sleep(again.seconds)


def _with_end(error: ModelUnavailable) -> ModelUnavailable:
    """Return an error whose sentence says when the wait ends that the provider asks for."""
    if not error.retry_after or error.retry_after < MIN_TOLD_SECONDS:
        return error
    end = datetime.now().astimezone() + timedelta(seconds=error.retry_after)
    sentence = f"{str(error).rstrip('.')}. It asks to wait until {end:%Y-%m-%d %H:%M:%S %Z}."
    return type(error)(sentence, error.retry_after, detail=error.detail, refusal=error.refusal)


def _may_fall_back(error: ModelError) -> bool:
    return isinstance(error, ModelUnavailable) or _kind(error) in _FALLBACK_KINDS


def _with_route(event: ModelStreamEvent, origin: str, *, instead_of: str) -> ModelStreamEvent:
    """Return an event, a response with the provider and the model that gave it."""
    if not isinstance(event, ModelResponse):
        return event
    return replace(event, origin=origin, instead_of=instead_of)


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

    def __init__(self, error: ModelError, *, has_text: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.has_text = has_text
