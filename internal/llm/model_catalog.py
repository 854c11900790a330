"""Limits and prices of models: the registry's figures, overridden by the settings."""

from internal.agent.domain.usage import Price, PriceTable
from internal.agent.ports.llm import DEFAULT_MAX_OUTPUT_TOKENS, ModelBook, ModelLimits
from internal.config.llm import LlmSettings
from internal.llm.registry import PROVIDERS, ModelInfo, find_model

PRICES = {
    info.name: Price(*info.prices)
    for provider in PROVIDERS
    for info in provider.models
    if info.prices is not None
}
"""List prices by model name, or by the start of the name."""


def make_model_book(settings: LlmSettings) -> ModelBook:
    """Return the limits and prices that runs use."""
    own = {name: Price(**dict(price)) for name, price in settings.prices.items()}

    def limits(model: str) -> ModelLimits:
        return model_limits(model, settings)

    return ModelBook(
        PriceTable({**PRICES, **own}),
        limits,
        settings.temperature,
        settings.provider,
        settings.model,
    )


def model_limits(model: str, settings: LlmSettings) -> ModelLimits:
    """Return the configured limits, reduced to what the model can do where that is known.

    Without a configured output limit it is that of the model.
    """
    info = find_model(model) or ModelInfo(model)
    window = min(settings.context_window, info.context_window or settings.context_window)
    known = info.max_output_tokens or DEFAULT_MAX_OUTPUT_TOKENS
    output = settings.max_output_tokens or min(known, window // 2)
    return ModelLimits(window, min(output, info.max_output_tokens or output))
