"""What we know of Claude models: how much they take, how much they say, what they cost.

From https://platform.claude.com/docs/en/about-claude/pricing and the model pages, as of AS_OF. A
dated or tagged name falls back to its longest known prefix. Settings beat every number here.
"""

from collections.abc import Mapping

from internal.agent.domain.budgets import Price, PriceTable
from internal.agent.ports.llm import ModelLimits

AS_OF = "2026-11-21"

_LARGE = ModelLimits(context_window=1_000_000, max_output_tokens=128_000)
_MEDIUM = ModelLimits(context_window=200_000, max_output_tokens=64_000)
_SMALL = ModelLimits(context_window=200_000, max_output_tokens=32_000)

_LIMITS: Mapping[str, ModelLimits] = {
    "claude-": _MEDIUM,
    "claude-fable-5": _LARGE,
    "claude-mythos-5": _LARGE,
    "claude-opus-5": _LARGE,
    "claude-opus-4-8": _LARGE,
    "claude-opus-4-7": _LARGE,
    "claude-opus-4-6": _LARGE,
    "claude-opus-4-5": _MEDIUM,
    "claude-opus-4": _SMALL,
    "claude-sonnet-5": _LARGE,
    "claude-sonnet-4-6": _LARGE,
    "claude-haiku-5": _LARGE,
}


def _price(into: float, out: float, read: float) -> Price:
    """Return a price; writing a five-minute cache costs a quarter more than plain input."""
    return Price(input=into, output=out, cache_read=read, cache_write=into * 1.25)


# claude-haiku-5-5 costs five times as much for calls of over 100,000 tokens: those are underrated.
PRICES: Mapping[str, Price] = {
    "claude-fable-5-2": _price(8.0, 40.0, 0.2),
    "claude-fable-5-1": _price(10.0, 50.0, 0.25),
    "claude-fable-5": _price(10.0, 50.0, 1.0),
    "claude-mythos-5-1": _price(10.0, 50.0, 0.25),
    "claude-mythos-5": _price(10.0, 50.0, 1.0),
    "claude-opus-5-5": _price(4.0, 20.0, 0.2),
    "claude-opus-5": _price(5.0, 25.0, 0.5),
    "claude-opus-4-8": _price(5.0, 25.0, 0.5),
    "claude-opus-4-7": _price(5.0, 25.0, 0.5),
    "claude-opus-4-6": _price(5.0, 25.0, 0.5),
    "claude-opus-4-5": _price(5.0, 25.0, 0.5),
    "claude-opus-4": _price(15.0, 75.0, 1.5),
    "claude-sonnet-5-5": _price(2.0, 10.0, 0.1),
    "claude-sonnet-5": _price(2.0, 10.0, 0.2),
    "claude-sonnet-4": _price(3.0, 15.0, 0.3),
    "claude-haiku-5-5": _price(0.1, 0.5, 0.01),
    "claude-haiku-4-5": _price(1.0, 5.0, 0.1),
    "offline-": Price(0.0, 0.0),
}


def limits(model: str, wanted: ModelLimits) -> ModelLimits:
    """Return what a call of the model may use: what is wanted, within what the model can do.

    `wanted` is what the settings say; of a model that is not known here it is believed.
    """
    known = max((name for name in _LIMITS if model.startswith(name)), key=len, default=None)
    if known is None:
        return wanted
    most = _LIMITS[known]
    return ModelLimits(
        context_window=min(wanted.context_window, most.context_window),
        max_output_tokens=min(wanted.max_output_tokens, most.max_output_tokens),
    )


def price_table(overrides: Mapping[str, Price]) -> PriceTable:
    """Return the prices that are known, those of the settings before ours."""
    return PriceTable({**PRICES, **overrides})
