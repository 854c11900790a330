"""The registry of model providers. A new provider is one entry in `PROVIDERS` and nothing else.

Settings validate against it, and `make generate` writes the tables of docs/models.md from it.
Standard library only.
"""

import re
from functools import lru_cache

from internal.model_providers.china import ARK, DEEPSEEK, GLM, KIMI, MINIMAX, QWEN
from internal.model_providers.claude import ANTHROPIC, BEDROCK, FOUNDRY, VERTEX
from internal.model_providers.openai import AZURE, OPENAI
from internal.model_providers.others import (
    GEMINI,
    MISTRAL,
    OFFLINE,
    OFFLINE_MODEL,
    OLLAMA,
    OPENROUTER,
    XAI,
)
from internal.model_providers.provider import (
    KnownProvider,
    ModelInfo,
    OpenAICompatible,
    Provider,
    ThinkingLevel,
    TokenPrices,
    find_longest,
    plain_name,
    prices,
)

__all__ = [
    "OFFLINE_MODEL",
    "PRICES_AS_OF",
    "PROVIDERS",
    "PROVIDER_NAMES",
    "ModelInfo",
    "OpenAICompatible",
    "Provider",
    "ThinkingLevel",
    "TokenPrices",
    "find_model",
    "find_provider",
    "find_providers_of_key",
    "plain_name",
    "prices",
]

PRICES_AS_OF = "2026-11-28"
"""The day on which the list prices and limits were read; the entries name their sources."""

# The order matters: the first provider whose key is set is used when the settings name none. New
# ones follow those that were there before, so that an upgrade changes no choice.
PROVIDERS: tuple[KnownProvider, ...] = (
    ANTHROPIC,
    OPENAI,
    ARK,
    DEEPSEEK,
    OPENROUTER,
    QWEN,
    KIMI,
    GLM,
    MINIMAX,
    GEMINI,
    MISTRAL,
    XAI,
    AZURE,
    BEDROCK,
    VERTEX,
    FOUNDRY,
    OLLAMA,
    OFFLINE,
)

PROVIDER_NAMES: tuple[str, ...] = tuple(provider.name for provider in PROVIDERS)


def find_provider(name: str) -> KnownProvider | None:
    """Return the provider with this name, or None."""
    return next((provider for provider in PROVIDERS if provider.name == name), None)


def find_providers_of_key(key: str) -> tuple[Provider, ...]:
    """Return the providers whose keys look like this one."""
    return tuple(
        each
        for each in PROVIDERS
        if each.key_pattern and re.fullmatch(each.key_pattern, key, re.ASCII)
    )


@lru_cache(256)
def find_model(name: str) -> ModelInfo | None:
    """Return the facts about a model of any provider, or None.

    A dated or tagged name matches the longest known name that it starts with.
    """
    return find_longest(tuple(info for one in PROVIDERS for info in one.models), name)
