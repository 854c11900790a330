"""Limits and prices of models: the registry's figures, overridden by the settings."""

from internal.agent.domain.usage import Price, PriceTable
from internal.agent.ports.llm import DEFAULT_MAX_OUTPUT_TOKENS, ModelBook, ModelLimits
from internal.model_providers.registry import PROVIDERS, ModelInfo, find_model, find_provider
from internal.settings.llm import LlmSettings
from internal.settings.messages import nearest, plain

_LISTED = {
    info.name: info.prices
    for provider in PROVIDERS
    for info in provider.models
    if info.prices is not None
}
# Amazon Bedrock takes a tenth more where the region is chosen: platform.claude.com/docs (pricing)
_BEDROCK = {"global.": 1.0, "": 1.1, "us.": 1.1, "eu.": 1.1, "jp.": 1.1, "au.": 1.1, "apac.": 1.1}
PRICES = {
    **{name: Price(*listed) for name, listed in _LISTED.items()},
    **{
        f"{region}anthropic.{name}": Price(*(each * factor for each in listed))
        for region, factor in _BEDROCK.items()
        for name, listed in _LISTED.items()
        if name.startswith("claude-")
    },
}
"""List prices by model name, or by the start of the name."""


def make_model_book(settings: LlmSettings) -> ModelBook:
    """Return the limits and prices that runs use."""
    own = {
        name: Price(price.input, price.output, price.cache_read, price.cache_write)
        for name, price in settings.prices.items()
    }

    def limits(model: str) -> ModelLimits:
        return model_limits(model, settings)

    return ModelBook(
        PriceTable({**PRICES, **own}),
        limits,
        settings.temperature,
        settings.provider,
        settings.model,
        lambda model: doubt_model(model, settings),
    )


def doubt_model(model: str, settings: LlmSettings) -> str:
    """Return why the provider may not have a model, a sentence with the nearest name, or "".

    Nothing is doubted at an address of the person's own, nor if the settings have its price. A name
    may have a date or a tag: `claude-x-20260101` is `claude-x`.
    """
    provider = find_provider(settings.provider)
    if provider is None or provider.any_model or settings.base_url:
        return ""
    listed = [info.name for info in provider.models]
    names = [provider.default_model, *(name for name in listed if not name.endswith("-"))]
    # "claude-" has the limits of models that are not listed; "doubao-seed-1-8-" is a model
    series = [
        name
        for name in listed
        if name.endswith("-") and not any(other.startswith(name) for other in names[1:])
    ]
    versions = [f"{name}{mark}" for name in names for mark in "-:@"]
    if model in {*names, settings.model, *settings.prices}:
        return ""
    if model.startswith((*series, *versions)):
        return ""
    return f"{provider.title} may not have the model {plain(model)}{nearest(model, names)}"


def model_limits(model: str, settings: LlmSettings) -> ModelLimits:
    """Return the configured limits, reduced to the known limits of the model.

    Without a configured output limit, the limit of the model applies.
    """
    info = find_model(model) or ModelInfo(model)
    window = min(settings.context_window, info.context_window or settings.context_window)
    known = info.max_output_tokens or DEFAULT_MAX_OUTPUT_TOKENS
    output = settings.max_output_tokens or min(known, window // 2)
    return ModelLimits(window, min(output, info.max_output_tokens or output))
