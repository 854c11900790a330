"""Registry entries: facts about a provider and its models.

Standard library only: the command line and the settings read the entries.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from internal.model_providers.dialect import Dialect

CloudName = Literal["bedrock", "vertex", "foundry"]
ThinkingLevel = Literal["off", "low", "medium", "high"]
Fields = Mapping[str, Any]
"""More fields of the body of a request."""
NO_FIELDS: Fields = MappingProxyType({})


class TokenPrices(NamedTuple):
    """List prices in US dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float


def prices(
    input_: float, output: float, cache_read: float, cache_write: float | None = None
) -> TokenPrices:
    """Return list prices. Writing to the cache costs 1.25 times the input unless stated."""
    return TokenPrices(
        input_, output, cache_read, input_ * 1.25 if cache_write is None else cache_write
    )


class ModelInfo(NamedTuple):
    """Facts about a model; None is unknown.

    `context_window` and `max_output_tokens` are in tokens. A name that ends with a dash stands for
    every model whose name starts with it. `pictures`: whether the model sees them. `dialect`
    overrides the fields of the provider's `Dialect`. `fields` are more fields of each request.
    """

    name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    prices: TokenPrices | None = None
    pictures: bool | None = None
    dialect: Fields = NO_FIELDS
    fields: Fields = NO_FIELDS


class ThinkingRule(NamedTuple):
    """The fields for the amount of thinking.

    `models` are the starts of their names; "" stands for every model. A level without fields is the
    default of the model.
    """

    models: tuple[str, ...]
    off: Fields
    low: Fields
    medium: Fields
    high: Fields

    def fields(self, level: ThinkingLevel) -> Fields:
        """Return the fields of a level."""
        return {"off": self.off, "low": self.low, "medium": self.medium, "high": self.high}[level]


def efforts(
    *models: str, off: str, low: str = "low", medium: str = "medium", high: str = "high"
) -> ThinkingRule:
    """Return a rule of models that take `reasoning_effort`."""
    return ThinkingRule(
        models,
        *({"reasoning_effort": effort} for effort in (off, low, medium, high)),
    )


def switch(*models: str, on: str = "enabled") -> ThinkingRule:
    """Return a rule of models whose thinking is only switched, by `thinking: {type}`."""
    enabled = {"thinking": {"type": on}}
    return ThinkingRule(models, {"thinking": {"type": "disabled"}}, enabled, enabled, enabled)


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider of models.

    Args:
        key_variable: the environment variable from which the provider's own tools read the key;
            None if it needs no key.
        other_key_variables: further such variables, which are read if the first one is not set.
        key_pattern: a regular expression that its keys match. Keys of a few other providers may
            match it as well.
        key_use: where a key is needed: `always`, only at the provider's own addresses
            (`own_address`), or nowhere, because there are other credentials (`optional`).
        base_url_variable: the variable of its address, as `key_variable`.
        regions: its own addresses, the default first. A key of one is rejected by the others.
        needs_address: it has no address of its own: each customer has another one.
        any_model: its models are too many to be listed, or are installed by the person.
        dialect: the form of its requests, as fields of `Dialect`.
        thinking: the request fields for thinking; the rule with the longest name applies.
    """

    name: str
    title: str
    description: str
    default_model: str
    models: tuple[ModelInfo, ...] = ()
    key_variable: str | None = None
    other_key_variables: tuple[str, ...] = ()
    key_pattern: str | None = None
    key_use: Literal["always", "own_address", "optional"] = "own_address"
    base_url_variable: str | None = None
    regions: tuple[str, ...] = ()
    needs_address: bool = False
    any_model: bool = False
    dialect: Fields = field(default_factory=lambda: NO_FIELDS)
    thinking: tuple[ThinkingRule, ...] = ()

    @property
    def key_variables(self) -> tuple[str, ...]:
        """All variables of the key, in the order in which they are read."""
        return (self.key_variable or "", *self.other_key_variables) if self.key_variable else ()

    def needs_key(self, base_url: str | None) -> bool:
        """Return True if requests to this address need a key. None is the provider's own."""
        if self.key_variable is None or self.key_use == "optional":
            return False
        return self.key_use == "always" or base_url is None

    def find_model(self, name: str) -> ModelInfo | None:
        """Return the facts about a model of this provider, or None."""
        return find_longest(self.models, name)

    def thinking_fields(self, model: str, level: ThinkingLevel | None) -> Fields:
        """Return the fields for an amount of thinking; none where it cannot be set."""
        name = plain_name(model)
        matching = (
            (len(start), rule)
            for rule in self.thinking
            for start in rule.models
            if name.startswith(start)
        )
        best = max(matching, key=lambda one: one[0], default=None)
        return NO_FIELDS if level is None or best is None else best[1].fields(level)

    def dialect_of(self, model: str, thinking: ThinkingLevel | None = None) -> "Dialect":
        """Return the dialect of requests to a model."""
        from internal.model_providers.dialect import Dialect  # noqa: PLC0415 - see above

        info = self.find_model(model) or ModelInfo(model)
        known = {**self.dialect, **info.dialect}
        if info.pictures is not None:
            known["pictures"] = info.pictures
        fields = {**info.fields, **self.thinking_fields(model, thinking)}
        return Dialect(**known, extra_fields=json.dumps(fields) if fields else "")


@dataclass(frozen=True, kw_only=True)
class Anthropic(Provider):
    """A provider that implements Anthropic's Messages API."""


@dataclass(frozen=True, kw_only=True)
class CloudClaude(Provider):
    """A cloud that serves Claude to its customers, with its own credentials."""

    cloud: CloudName


@dataclass(frozen=True, kw_only=True)
class OpenAICompatible(Provider):
    """A provider that implements OpenAI's Chat Completions API.

    `base_url` is its address. `key_header` is the header of the key; `authorization` gets it as a
    bearer token. `own_path` completes an address of the person's own that has no path.
    """

    base_url: str
    key_header: str = "authorization"
    own_path: str = ""

    def complete_address(self, base_url: str | None) -> str | None:
        """Return an address of the person's own with `own_path` if it has no path."""
        if base_url and self.own_path and not urlsplit(base_url).path.strip("/"):
            return base_url.rstrip("/") + self.own_path
        return base_url


@dataclass(frozen=True, kw_only=True)
class OfflineDemo(Provider):
    """The built-in demo model, which needs no network."""


KnownProvider = Anthropic | CloudClaude | OpenAICompatible | OfflineDemo
"""The kinds of providers; each has a client in `internal.llm.model_factory`."""


def find_longest(models: tuple[ModelInfo, ...], name: str) -> ModelInfo | None:
    """Return the entry with the longest name that a dated or tagged name starts with, or None."""
    matching = [info for info in models if plain_name(name).startswith(info.name)]
    matching = matching or [info for info in models if name.startswith(info.name)]
    return max(matching, key=lambda info: len(info.name), default=None)


def plain_name(model: str) -> str:
    """Return Anthropic's own name of a model that a cloud serves, other names unchanged.

    Amazon Bedrock writes `global.anthropic.claude-x-v1:0`, or the ARN of a profile that ends so.
    """
    _, vendor, name = model.rpartition("anthropic.")
    return name if vendor and name.startswith("claude-") else model
