"""The roster of providers, and how settings become a model. A new provider is one line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from internal.agent.domain.errors import InvalidRequest
from internal.config.vendors import VENDORS
from internal.llm.anthropic import AnthropicModel
from internal.llm.errors import ProviderInfo
from internal.llm.offline.model import MODEL as OFFLINE
from internal.llm.offline.model import OfflineModel
from internal.llm.openai import OpenAIModel, Service
from internal.llm.openai_request import Dialect
from internal.llm.retry import ProviderClient, RetryingModel, RetryPolicy, Route
from internal.llm.secrets import Secret
from internal.llm.text_tool_calls import TextCalls


@dataclass(frozen=True)
class ProviderCredentials:
    """The way into one provider. Without `base_url` it is the provider's own address."""

    key: Secret = field(default_factory=lambda: Secret(""))
    base_url: str | None = None


@dataclass(frozen=True)
class ModelSettings:
    """What this room needs to know. Which model is asked for, each request says.

    `access` holds the key and address of each provider by its name; those that the fallbacks need
    are among them. `request_timeout_seconds` is the longest silence of a connection. A fallback is
    written `provider:model`. With `tool_calls` as `text` the models of `provider`, not those of
    others, are told of tools in words.
    """

    provider: str
    access: Mapping[str, ProviderCredentials] = field(default_factory=dict)
    request_timeout_seconds: float = 120.0
    max_retries: int = 4
    fallbacks: tuple[str, ...] = ()
    concurrency: int = 16
    tool_calls: Literal["native", "text"] = "native"


@dataclass(frozen=True)
class Provider:
    """A provider of models. `key_name` is the variable that its key comes from, if it needs one."""

    name: str
    key_name: str | None
    default_model: str
    connect: Callable[[ProviderCredentials, float], ProviderClient]


def _anthropic(access: ProviderCredentials, silence_seconds: float) -> ProviderClient:
    return AnthropicModel(access.key, base_url=access.base_url, silence_seconds=silence_seconds)


def _offline(_access: ProviderCredentials, _silence_seconds: float) -> ProviderClient:
    return OfflineModel()


def _compatible(
    service: Service, access: ProviderCredentials, silence_seconds: float
) -> ProviderClient:
    address, silence = access.base_url, silence_seconds
    return OpenAIModel(service, access.key, base_url=address, silence_seconds=silence)


def _openai(name: str, spoken: str, address: str, dialect: Dialect | None = None) -> Provider:
    """Return a provider that speaks Chat Completions at an address."""
    key_name, _, model = VENDORS[name]
    service = Service(name, ProviderInfo(spoken, key_name), address, dialect or Dialect())
    return Provider(name, key_name, model, partial(_compatible, service))


_OPENAI = Dialect(limit="max_completion_tokens")
_CLAUDE = VENDORS["anthropic"]

PROVIDERS: tuple[Provider, ...] = (
    Provider("anthropic", _CLAUDE.key_variable, _CLAUDE.model, _anthropic),
    _openai("openai", "OpenAI", "https://api.openai.com/v1", _OPENAI),
    _openai("ark", "Ark", "https://ark.cn-beijing.volces.com/api/v3"),
    _openai("deepseek", "DeepSeek", "https://api.deepseek.com", Dialect(thoughts=True)),
    _openai("openrouter", "OpenRouter", "https://openrouter.ai/api/v1"),
    _openai("ollama", "Ollama", "http://127.0.0.1:11434/v1"),
    Provider("offline", None, OFFLINE, _offline),
)


def provider_named(name: str) -> Provider:
    """Return a provider of the roster.

    Raises:
        Malformed: there is none of that name.
    """
    for provider in PROVIDERS:
        if provider.name == name:
            return provider
    names = ", ".join(provider.name for provider in PROVIDERS)
    raise InvalidRequest(f"There is no model provider {name!r}; known are: {names}.")


def build_model(settings: ModelSettings) -> RetryingModel:
    """Return the model of the settings with its retries and fallbacks. Instant: imports no SDK.

    `check_key` tells at once whether keys are missing, `warm` starts what takes long.

    Raises:
        Malformed: a provider is not known, or a fallback is not written `provider:model`.
    """
    clients: dict[str, ProviderClient] = {}

    def route(name: str, model: str) -> Route:
        provider = provider_named(name)
        if name not in clients:
            access = settings.access.get(name, ProviderCredentials())
            client = provider.connect(access, settings.request_timeout_seconds)
            in_words = settings.tool_calls == "text" and name == settings.provider
            clients[name] = TextCalls(client) if in_words else client
        return Route(clients[name], model)

    routes = [route(settings.provider, "")]  # the request, and with it the profile, names the model
    for fallback in settings.fallbacks:
        name, colon, model = fallback.partition(":")
        if not colon or not model:
            raise InvalidRequest(f"The fallback {fallback!r} must be written provider:model.")
        routes.append(route(name, model))
    return RetryingModel(
        routes,
        patience=RetryPolicy(retries=settings.max_retries),
        concurrency=settings.concurrency,
    )
