"""Builds the model client that the settings describe, with its fallbacks and retries."""

import asyncio

from internal.agent.domain.errors import InvalidRequest
from internal.config.llm import LlmSettings
from internal.llm.lessons.book import LessonBook
from internal.llm.providers.provider import ConnectionOptions
from internal.llm.registry import PROVIDER_NAMES, find_provider
from internal.llm.retry import ProviderClient, RetryingModel, RetryPolicy, Route, Sleep
from internal.llm.text_tool_calls import TextToolCalls
from internal.llm.transport import ApiKey


def build_model(
    settings: LlmSettings, sleep: Sleep = asyncio.sleep, lessons: LessonBook | None = None
) -> RetryingModel:
    """Return the model with its retries and fallbacks. Instant. It shares the `lessons`.

    `check_key` reports missing keys, `preload` starts slow work.

    Raises:
        InvalidRequest: a fallback names an unknown provider, or the recording cannot be used.
    """
    clients: dict[str, ProviderClient] = {}
    book = LessonBook() if lessons is None else lessons

    def route(name: str, model: str) -> Route:
        if name not in clients:
            clients[name] = _connect(name, settings, book)
        return Route(clients[name], model)

    # the request names the model of the primary route, because a profile may choose it
    routes = [route(settings.provider, "")]
    for fallback in settings.fallbacks:
        name, _, model = fallback.partition(":")
        routes.append(route(name, model))
    return RetryingModel(
        routes,
        policy=RetryPolicy(retries=settings.max_retries),
        concurrency=settings.concurrency,
        sleep=sleep,
    )


def _connect(name: str, settings: LlmSettings, lessons: LessonBook) -> ProviderClient:
    provider = find_provider(name)
    if provider is None:
        known = ", ".join(PROVIDER_NAMES)
        raise InvalidRequest(
            f"Unknown model provider {name!r}; the known ones are {known}.",
            reason_code="no_provider",
            provider=name,
            known=known,
        )
    if name == "offline" and settings.recording is not None:
        from internal.llm.offline.recorded_model import RecordedModel, read_recording  # noqa: PLC0415 - rarely used

        return RecordedModel(read_recording(settings.recording))
    key, base_url = settings.credentials(name)
    options = ConnectionOptions(
        key=ApiKey(key),
        base_url=base_url,
        silence_seconds=settings.request_timeout_seconds,
        thinking=settings.thinking,
        lessons=lessons,
    )
    client = provider.connect(options)
    if settings.tool_calls == "text" and name == settings.provider:
        return TextToolCalls(client)
    return client
