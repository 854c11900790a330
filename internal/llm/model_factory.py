"""Builds the model client that the settings describe, with its fallbacks and retries."""
# ruff: noqa: PLC0415 - an adapter is imported when its provider is used

import asyncio
from functools import lru_cache, partial
from typing import assert_never

from internal.agent.domain.errors import InvalidRequest
from internal.llm.errors import ProviderInfo
from internal.llm.lessons.book import LessonBook
from internal.llm.retry import ProviderClient, RetryingModel, RetryPolicy, Route, Sleep
from internal.llm.text_tool_calls import TextToolCalls
from internal.llm.transport import ApiKey
from internal.model_providers.provider import (
    Anthropic,
    CloudClaude,
    KnownProvider,
    OfflineDemo,
    OpenAICompatible,
)
from internal.model_providers.registry import PROVIDER_NAMES, find_provider
from internal.settings.llm import LlmSettings


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
    client = _make_client(provider, settings, lessons)
    # a recording replays its calls as they are
    in_text = settings.tool_calls == "text" and settings.recording is None
    if in_text and name == settings.provider:
        return TextToolCalls(client)
    return client


def _make_client(
    provider: KnownProvider, settings: LlmSettings, lessons: LessonBook
) -> ProviderClient:
    """Return the client of a provider. Instant.

    Raises:
        InvalidRequest: the recording cannot be used.
    """
    secret, base_url = settings.credentials(provider.name)
    key, silence_seconds = ApiKey(secret), settings.request_timeout_seconds
    peer = ProviderInfo(provider.title, provider.key_variable)
    dialect_of = lru_cache(64)(partial(provider.dialect_of, thinking=settings.thinking))
    match provider:
        case OfflineDemo():
            return _offline_model(settings)
        case Anthropic():
            from internal.llm.anthropic import AnthropicModel

            return AnthropicModel(
                key,
                base_url=base_url,
                silence_seconds=silence_seconds,
                dialect_of=dialect_of,
                lessons=lessons,
            )
        case CloudClaude():
            from internal.llm.cloud_claude import connect_cloud

            return connect_cloud(
                provider.cloud,
                peer,
                key,
                base_url=base_url,
                silence_seconds=silence_seconds,
                dialect_of=dialect_of,
                lessons=lessons,
            )
        case OpenAICompatible():
            from internal.llm.openai import OpenAIModel, Service

            service = Service(
                provider.name,
                peer,
                provider.base_url,
                dialect_of=dialect_of,
                key_header=provider.key_header,
                key_elsewhere=provider.key_use == "always",
                address_variable=provider.base_url_variable or "",
            )
            return OpenAIModel(
                service,
                key,
                base_url=provider.complete_address(base_url),
                silence_seconds=silence_seconds,
                lessons=lessons,
            )
        case _ as never:
            assert_never(never)


def _offline_model(settings: LlmSettings) -> ProviderClient:
    if settings.recording is not None:
        from internal.llm.offline.recorded_model import RecordedModel, read_recording

        return RecordedModel(read_recording(settings.recording))
    from internal.llm.offline.model import OfflineModel

    return OfflineModel()
