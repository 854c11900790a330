"""The registry of model providers. A new provider is one entry in `PROVIDERS` and nothing else.

Settings validate against it, and `make generate` writes the tables of docs/models.md from it.
Standard library only: the command line and the settings read it, so an adapter is imported when a
provider is connected.
"""
# ruff: noqa: PLC0415 - adapters are imported by `connect`, see above

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from internal.llm.retry import ProviderClient
    from internal.llm.transport import ApiKey

PRICES_AS_OF = "2026-11-21"
"""The day on which the list prices and limits below were read from the providers' pages."""

OFFLINE_MODEL = "offline-demo"


class TokenPrices(NamedTuple):
    """List prices in US dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float


class ModelInfo(NamedTuple):
    """What is known about a model; None is unknown.

    `context_window` and `max_output_tokens` are in tokens. A name that ends with a dash stands for
    every model whose name starts with it.
    """

    name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    prices: TokenPrices | None = None


def prices(
    input_: float, output: float, cache_read: float, cache_write: float | None = None
) -> TokenPrices:
    """Return list prices. Writing to the cache costs 1.25 times the input unless stated."""
    return TokenPrices(
        input_, output, cache_read, input_ * 1.25 if cache_write is None else cache_write
    )


@dataclass(frozen=True, kw_only=True)
class Provider(ABC):
    """A provider of models.

    `key_variable` and `base_url_variable` are the environment variables that the provider's own
    tools read; None where the provider has none. A provider without a `key_variable` needs no key.
    `key_pattern` is a regular expression that its keys match and those of other providers do not.
    `any_model`: its models are too many to be listed, or those that a person has installed.
    """

    name: str
    title: str
    description: str
    default_model: str
    models: tuple[ModelInfo, ...]
    key_variable: str | None = None
    key_pattern: str | None = None
    base_url_variable: str | None = None
    any_model: bool = False

    @abstractmethod
    def connect(
        self, key: "ApiKey", base_url: str | None, *, silence_seconds: float
    ) -> "ProviderClient":
        """Return a client. Instant.

        `base_url` None is the provider's own address. `silence_seconds` is the longest wait for the
        next bytes of a connection.
        """


@dataclass(frozen=True, kw_only=True)
class Anthropic(Provider):
    """A provider that implements Anthropic's Messages API."""

    def connect(
        self, key: "ApiKey", base_url: str | None, *, silence_seconds: float
    ) -> "ProviderClient":
        """Return a client of the Messages API."""
        from internal.llm.anthropic import AnthropicModel

        return AnthropicModel(key, base_url=base_url, silence_seconds=silence_seconds)


@dataclass(frozen=True, kw_only=True)
class OpenAICompatible(Provider):
    """A provider that implements OpenAI's Chat Completions API.

    `limit_field` is the name under which the longest reply is sent. `resend_reasoning`: earlier
    reasoning is sent back with the tool calls it led to.
    """

    base_url: str
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    resend_reasoning: bool = False

    def connect(
        self, key: "ApiKey", base_url: str | None, *, silence_seconds: float
    ) -> "ProviderClient":
        """Return a client of Chat Completions."""
        from internal.llm.errors import ProviderInfo
        from internal.llm.openai import OpenAIModel, Service
        from internal.llm.openai_request import Dialect

        dialect = Dialect(limit_field=self.limit_field, resend_reasoning=self.resend_reasoning)
        info = ProviderInfo(self.title, self.key_variable)
        service = Service(self.name, info, self.base_url, dialect)
        return OpenAIModel(service, key, base_url=base_url, silence_seconds=silence_seconds)


@dataclass(frozen=True, kw_only=True)
class OfflineDemo(Provider):
    """The built-in demo model, which needs no network."""

    def connect(
        self,
        key: "ApiKey",  # noqa: ARG002 - required by Provider
        base_url: str | None,  # noqa: ARG002 - required by Provider
        *,
        silence_seconds: float,  # noqa: ARG002 - required by Provider
    ) -> "ProviderClient":
        """Return the demo model."""
        from internal.llm.offline.model import OfflineModel

        return OfflineModel()


# Limits and prices are from the providers' own pages as of PRICES_AS_OF:
# platform.claude.com/docs/en/about-claude/pricing, developers.openai.com/api/docs/models,
# api-docs.deepseek.com/quick_start/pricing and the pages of the models. Long calls that cost more
# are underestimated: claude-haiku-5-5 over 100,000 tokens costs five times as much, gpt-6 over
# 272,000 tokens twice. DeepSeek's prices are those of its peak hours; outside of them it takes
# half. Ark lists its prices in yuan and OpenRouter's change daily, so neither is listed.
#
# The order matters: the first provider whose key is set is used when the settings name none.
PROVIDERS: tuple[Provider, ...] = (
    Anthropic(
        name="anthropic",
        title="Anthropic",
        description="Claude, through Anthropic's API or any server that implements it",
        key_variable="ANTHROPIC_API_KEY",
        key_pattern=r"sk-ant-[\w-]{8,}",
        base_url_variable="ANTHROPIC_BASE_URL",
        default_model="claude-sonnet-5-5",
        models=(
            ModelInfo("claude-sonnet-5-5", 1_000_000, 128_000, prices(2.0, 10.0, 0.1)),
            ModelInfo("claude-opus-5-5", 1_000_000, 128_000, prices(4.0, 20.0, 0.2)),
            ModelInfo("claude-haiku-5-5", 1_000_000, 128_000, prices(0.1, 0.5, 0.01)),
            ModelInfo("claude-fable-5-2", 1_000_000, 128_000, prices(8.0, 40.0, 0.2)),
            ModelInfo("claude-fable-5-1", 1_000_000, 128_000, prices(10.0, 50.0, 0.25)),
            ModelInfo("claude-fable-5", 1_000_000, 128_000, prices(10.0, 50.0, 1.0)),
            ModelInfo("claude-mythos-5-1", 1_000_000, 128_000, prices(10.0, 50.0, 0.25)),
            ModelInfo("claude-mythos-5", 1_000_000, 128_000, prices(10.0, 50.0, 1.0)),
            ModelInfo("claude-opus-5", 1_000_000, 128_000, prices(5.0, 25.0, 0.5)),
            ModelInfo("claude-opus-4-8", 1_000_000, 128_000, prices(5.0, 25.0, 0.5)),
            ModelInfo("claude-opus-4-7", 1_000_000, 128_000, prices(5.0, 25.0, 0.5)),
            ModelInfo("claude-opus-4-6", 1_000_000, 128_000, prices(5.0, 25.0, 0.5)),
            ModelInfo("claude-opus-4-5", 200_000, 64_000, prices(5.0, 25.0, 0.5)),
            ModelInfo("claude-opus-4", 200_000, 32_000, prices(15.0, 75.0, 1.5)),
            ModelInfo("claude-sonnet-5", 1_000_000, 128_000, prices(2.0, 10.0, 0.2)),
            ModelInfo("claude-sonnet-4-6", 1_000_000, 128_000, prices(3.0, 15.0, 0.3)),
            ModelInfo("claude-sonnet-4", 200_000, 64_000, prices(3.0, 15.0, 0.3)),
            ModelInfo("claude-haiku-5", 1_000_000, 128_000),
            ModelInfo("claude-haiku-4-5", 200_000, 64_000, prices(1.0, 5.0, 0.1)),
            ModelInfo("claude-", 200_000, 64_000),
        ),
    ),
    OpenAICompatible(
        name="openai",
        title="OpenAI",
        description="OpenAI, or any server that implements Chat Completions",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        key_pattern=r"sk-(?!ant-|or-|[0-9a-f]{32}$)[\w-]{8,}",
        base_url_variable="OPENAI_BASE_URL",
        default_model="gpt-6-sol",
        models=(
            ModelInfo("gpt-6-sol", 1_050_000, 128_000, prices(2.0, 10.0, 0.2)),
            ModelInfo("gpt-6-luna", 1_050_000, 128_000, prices(0.1, 0.5, 0.01)),
            ModelInfo("gpt-6-astra", 1_050_000, 128_000, prices(10.0, 50.0, 1.0)),
            ModelInfo("gpt-6.1-terra", 1_050_000, 128_000, prices(1.0, 5.0, 0.05)),
            ModelInfo("gpt-6.1-sol", 1_050_000, 128_000, prices(2.0, 10.0, 0.1)),
            ModelInfo("gpt-6.2-sol", 1_050_000, 128_000, prices(2.0, 10.0, 0.1)),
            ModelInfo("gpt-5.4-mini", 400_000, 128_000, prices(0.75, 4.5, 0.075, 0.75)),
            ModelInfo("gpt-5.4-nano", None, None, prices(0.2, 1.25, 0.02, 0.2)),
        ),
        limit_field="max_completion_tokens",
    ),
    OpenAICompatible(
        name="ark",
        title="Ark",
        description="Volcano Engine Ark (Doubao and others)",
        base_url="https://ark.cn-beijing.volces.com/api/v3",
        key_variable="ARK_API_KEY",
        key_pattern=r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        default_model="doubao-seed-1-8-251228",
        models=(
            ModelInfo("doubao-seed-1-8-", 256_000),
            ModelInfo("doubao-seed-1-6-", 256_000),
            ModelInfo("doubao-seed-2-0-", 256_000),
        ),
    ),
    OpenAICompatible(
        name="deepseek",
        title="DeepSeek",
        description="DeepSeek",
        base_url="https://api.deepseek.com",
        key_variable="DEEPSEEK_API_KEY",
        key_pattern=r"sk-[0-9a-f]{32}",
        default_model="deepseek-flash",
        models=(
            ModelInfo("deepseek-flash", 1_000_000, 384_000, prices(0.3, 1.2, 0.006, 0.3)),
            ModelInfo("deepseek-v4-pro", 1_000_000, 384_000, prices(1.32, 3.96, 0.044, 1.32)),
        ),
        resend_reasoning=True,
    ),
    OpenAICompatible(
        name="openrouter",
        title="OpenRouter",
        description="OpenRouter, which serves the models of many providers",
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        key_pattern=r"sk-or-[\w-]{8,}",
        default_model="anthropic/claude-sonnet-5.5",
        models=(ModelInfo("anthropic/claude-sonnet-5.5", 1_000_000, 128_000),),
        any_model=True,
    ),
    OpenAICompatible(
        name="ollama",
        title="Ollama",
        description="Ollama, at `http://127.0.0.1:11434/v1` by default",
        base_url="http://127.0.0.1:11434/v1",
        default_model="gpt-oss:20b",
        models=(ModelInfo("gpt-oss:20b"),),
        any_model=True,
    ),
    OfflineDemo(
        name="offline",
        title="Offline demo",
        description="the offline demo model: a few rules, not a real model",
        default_model=OFFLINE_MODEL,
        models=(ModelInfo("offline-", prices=TokenPrices(0.0, 0.0, 0.0, 0.0)),),
        any_model=True,
    ),
)

PROVIDER_NAMES: tuple[str, ...] = tuple(provider.name for provider in PROVIDERS)


def find_provider(name: str) -> Provider | None:
    """Return the provider with this name, or None."""
    return next((provider for provider in PROVIDERS if provider.name == name), None)


def find_provider_of_key(key: str) -> Provider | None:
    """Return the provider whose keys look like this one, or None."""
    patterns = ((provider, provider.key_pattern) for provider in PROVIDERS)
    return next(
        (one for one, pattern in patterns if pattern and re.fullmatch(pattern, key, re.ASCII)), None
    )


@lru_cache(256)
def find_model(name: str) -> ModelInfo | None:
    """Return what is known about a model, or None.

    A dated or tagged name matches the longest known name that it starts with.
    """
    known = [info for provider in PROVIDERS for info in provider.models]
    matching = [info for info in known if name.startswith(info.name)]
    return max(matching, key=lambda info: len(info.name), default=None)
