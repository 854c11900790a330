"""What we know of models: how much they take, how much they say, what they cost.

From the providers' own pages as of AS_OF: platform.claude.com/docs/en/about-claude/pricing,
developers.openai.com/api/docs/models, api-docs.deepseek.com/quick_start/pricing and the pages of
the models. What is not known is None. A dated or tagged name falls back to its longest known
prefix. Settings beat every number here.
"""

from collections.abc import Mapping
from typing import NamedTuple

from internal.agent.domain.usage import Price, PriceTable
from internal.agent.ports.llm import ModelLimits

AS_OF = "2026-11-21"


class Known(NamedTuple):
    """A model, or with a dash at its end all whose names begin so. Tokens; None is not known."""

    provider: str
    name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    price: Price | None = None


def _price(into: float, out: float, read: float, written: float | None = None) -> Price:
    """Return a price; writing a cache costs a quarter more than plain input if not said."""
    return Price(input=into, output=out, cache_read=read, cache_write=written or into * 1.25)


# Calls that cost more when they are long are underrated: claude-haiku-5-5 over 100,000 tokens (five
# times as much), gpt-6 over 272,000 (twice). DeepSeek's prices are those of its peak hours; outside
# of them it takes half. Ark has its prices in yuan, OpenRouter each day anew, Ollama none.
KNOWN: tuple[Known, ...] = (
    Known("anthropic", "claude-sonnet-5-5", 1_000_000, 128_000, _price(2.0, 10.0, 0.1)),
    Known("anthropic", "claude-opus-5-5", 1_000_000, 128_000, _price(4.0, 20.0, 0.2)),
    Known("anthropic", "claude-haiku-5-5", 1_000_000, 128_000, _price(0.1, 0.5, 0.01)),
    Known("anthropic", "claude-fable-5-2", 1_000_000, 128_000, _price(8.0, 40.0, 0.2)),
    Known("anthropic", "claude-fable-5-1", 1_000_000, 128_000, _price(10.0, 50.0, 0.25)),
    Known("anthropic", "claude-fable-5", 1_000_000, 128_000, _price(10.0, 50.0, 1.0)),
    Known("anthropic", "claude-mythos-5-1", 1_000_000, 128_000, _price(10.0, 50.0, 0.25)),
    Known("anthropic", "claude-mythos-5", 1_000_000, 128_000, _price(10.0, 50.0, 1.0)),
    Known("anthropic", "claude-opus-5", 1_000_000, 128_000, _price(5.0, 25.0, 0.5)),
    Known("anthropic", "claude-opus-4-8", 1_000_000, 128_000, _price(5.0, 25.0, 0.5)),
    Known("anthropic", "claude-opus-4-7", 1_000_000, 128_000, _price(5.0, 25.0, 0.5)),
    Known("anthropic", "claude-opus-4-6", 1_000_000, 128_000, _price(5.0, 25.0, 0.5)),
    Known("anthropic", "claude-opus-4-5", 200_000, 64_000, _price(5.0, 25.0, 0.5)),
    Known("anthropic", "claude-opus-4", 200_000, 32_000, _price(15.0, 75.0, 1.5)),
    Known("anthropic", "claude-sonnet-5", 1_000_000, 128_000, _price(2.0, 10.0, 0.2)),
    Known("anthropic", "claude-sonnet-4-6", 1_000_000, 128_000, _price(3.0, 15.0, 0.3)),
    Known("anthropic", "claude-sonnet-4", 200_000, 64_000, _price(3.0, 15.0, 0.3)),
    Known("anthropic", "claude-haiku-5", 1_000_000, 128_000),
    Known("anthropic", "claude-haiku-4-5", 200_000, 64_000, _price(1.0, 5.0, 0.1)),
    Known("anthropic", "claude-", 200_000, 64_000),
    Known("openai", "gpt-6-sol", 1_050_000, 128_000, _price(2.0, 10.0, 0.2)),
    Known("openai", "gpt-6-luna", 1_050_000, 128_000, _price(0.1, 0.5, 0.01)),
    Known("openai", "gpt-6-astra", 1_050_000, 128_000, _price(10.0, 50.0, 1.0)),
    Known("openai", "gpt-6.1-terra", 1_050_000, 128_000, _price(1.0, 5.0, 0.05)),
    Known("openai", "gpt-6.1-sol", 1_050_000, 128_000, _price(2.0, 10.0, 0.1)),
    Known("openai", "gpt-6.2-sol", 1_050_000, 128_000, _price(2.0, 10.0, 0.1)),
    Known("openai", "gpt-5.4-mini", 400_000, 128_000, _price(0.75, 4.5, 0.075, 0.75)),
    Known("openai", "gpt-5.4-nano", None, None, _price(0.2, 1.25, 0.02, 0.2)),
    Known("ark", "doubao-seed-1-8-", 256_000),
    Known("ark", "doubao-seed-1-6-", 256_000),
    Known("ark", "doubao-seed-2-0-", 256_000),
    Known("deepseek", "deepseek-flash", 1_000_000, 384_000, _price(0.3, 1.2, 0.006, 0.3)),
    Known("deepseek", "deepseek-v4-pro", 1_000_000, 384_000, _price(1.32, 3.96, 0.044, 1.32)),
    Known("openrouter", "anthropic/claude-sonnet-5.5", 1_000_000, 128_000),
    Known("ollama", "gpt-oss:20b"),
    Known("offline", "offline-", price=Price(0.0, 0.0)),
)
PRICES: Mapping[str, Price] = {known.name: known.price for known in KNOWN if known.price}


def limits(model: str, wanted: ModelLimits) -> ModelLimits:
    """Return what a call of the model may use: what is wanted, within what the model can do.

    `wanted` is what the settings say; where a model is not known it is believed.
    """
    fitting = [known for known in KNOWN if model.startswith(known.name)]
    most = max(fitting, key=lambda known: len(known.name), default=Known("", ""))
    return ModelLimits(
        context_window=min(wanted.context_window, most.context_window or wanted.context_window),
        max_output_tokens=min(
            wanted.max_output_tokens, most.max_output_tokens or wanted.max_output_tokens
        ),
    )


def price_table(overrides: Mapping[str, Price]) -> PriceTable:
    """Return the prices that are known, those of the settings before ours."""
    return PriceTable({**PRICES, **overrides})
