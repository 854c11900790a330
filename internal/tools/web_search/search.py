"""Asks the search providers in order until one answers."""

import logging
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple

from internal.agent.domain.errors import ToolError
from internal.agent.ports.runtime import Clock
from internal.search_providers.provider import SearchProvider, SearchQuery, SearchResult
from internal.tools.http_client import Fetcher, HttpResponse, describe_status
from internal.tools.http_urls import PublicUrl
from internal.tools.web_search.cache import AnswerCache, CacheStatistics
from internal.tools.web_search.results import clean

MAX_RESPONSE_BYTES = 2_000_000
MAX_PAUSE = timedelta(days=1)
"""The longest that a provider is left out because of its Retry-After."""

_REFUSED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_OPERATORS = frozenset({"AND", "NOT", "OR"})

logger = logging.getLogger(__name__)


class SearchAnswer(NamedTuple):
    """The results of a provider; `failures` are the reasons why the providers before it failed."""

    provider: str
    results: tuple[SearchResult, ...]
    failures: tuple[str, ...]


class WebSearch:
    """The configured providers and the cache of their answers.

    Args:
        providers: in the order in which they are asked.
        fetcher: sends the requests.
        clock: tells how old an answer is, and until when a provider is left out.
        cache_minutes: how long an answer is kept; 0 to keep none.
    """

    def __init__(
        self,
        providers: Sequence[SearchProvider],
        fetcher: Fetcher,
        clock: Clock,
        *,
        cache_minutes: int = 60,
    ) -> None:
        self._providers = tuple(providers)
        self._fetcher = fetcher
        self._clock = clock
        self._cache: AnswerCache[SearchAnswer] = AnswerCache(cache_minutes * 60, clock)
        self._paused_until: dict[str, datetime] = {}

    @property
    def statistics(self) -> CacheStatistics:
        """The hits and misses of the cache."""
        return self._cache.statistics

    async def search(self, query: SearchQuery) -> tuple[SearchAnswer, bool]:
        """Return the results of the first provider that answers, and whether they were cached.

        Raises:
            ToolError: none answers; the sentence has the reason of each.
        """
        return await self._cache.get(_cache_key(query), lambda: self._ask_in_order(query))

    async def _ask_in_order(self, query: SearchQuery) -> SearchAnswer:
        failures: list[str] = []
        for provider in self._providers:
            try:
                results = await self._ask(provider, query)
            except ToolError as error:
                logger.warning(
                    "search provider failed",
                    extra={"provider": provider.name, "reason": str(error)},
                )
                failures.append(f"{provider.title}: {error}.")
            else:
                return SearchAnswer(provider.title, results, tuple(failures))
        raise ToolError(f"no search provider answered. {' '.join(failures)}")

    async def _ask(self, provider: SearchProvider, query: SearchQuery) -> tuple[SearchResult, ...]:
        """Return the results of a provider.

        Raises:
            ToolError: there are none; the reason is a clause.
        """
        if provider.missing:
            raise ToolError(provider.missing)
        pause = self._paused_until.get(provider.name, self._clock.now()) - self._clock.now()
        if pause > timedelta():
            seconds = math.ceil(pause.total_seconds())
            raise ToolError(f"it asked for a pause, which lasts {seconds} s more")
        request = provider.request(query)
        response = await self._fetcher.send(
            PublicUrl.parse(request.url), request.headers, request.body
        )
        self._check(provider, response)
        return clean(query, provider.read(response.body))

    def _check(self, provider: SearchProvider, response: HttpResponse) -> None:
        """Check that a response may hold results.

        Raises:
            ToolError: it does not.
        """
        if response.status != HTTPStatus.OK:
            advice = f": {provider.refusal_advice}" if response.status in _REFUSED else ""
            wait = _parse_retry_after(response.headers.get("retry-after", ""), self._clock.now())
            if wait > timedelta():
                self._paused_until[provider.name] = self._clock.now() + min(wait, MAX_PAUSE)
            raise ToolError(f"it answered {describe_status(response.status)}{advice}")
        if response.truncated:
            raise ToolError("the response is too long, or ends early")
        if "html" in response.media_type or response.body.lstrip()[:1] == b"<":
            raise ToolError("it answered with HTML instead of JSON")


def _cache_key(query: SearchQuery) -> object:
    words = (word if word in _OPERATORS else word.casefold() for word in query.text.split())
    return " ".join(words), query.limit, query.recency, query.domain


def _parse_retry_after(text: str, now: datetime) -> timedelta:
    """Return the time that a Retry-After names (RFC 9110 10.2.3), zero if it names none."""
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:10]), MAX_PAUSE.total_seconds()))
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return timedelta()
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now
