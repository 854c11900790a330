"""Usage and limits of a run: tokens, money, iterations, time."""

from collections.abc import Mapping
from typing import Literal

import msgspec


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one or more model calls. `input_tokens` excludes cached tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    @property
    def total(self) -> int:
        """All tokens, cached ones included."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )


class Spending(msgspec.Struct, frozen=True):
    """The usage of a run with all subtasks below it, and their number.

    `cost` is in US dollars, as far as prices are known; None if no price is.
    """

    usage: Usage = Usage()
    cost: float | None = None
    subtasks: int = 0

    def __add__(self, other: "Spending") -> "Spending":
        known = [each.cost for each in (self, other) if each.cost is not None]
        cost = sum(known) if known else None
        return Spending(self.usage + other.usage, cost, self.subtasks + other.subtasks)


ContextPartKind = Literal[
    "rules", "owner", "chat", "folder", "caller", "skills", "tools", "loaded_skills", "conversation"
]


class ContextPart(msgspec.Struct, frozen=True):
    """A part of a request to the model, in estimated tokens.

    `rules` are those of Larkspur and the profile. `owner`, `chat`, `folder` and `caller` are
    instructions, `name` is their file. `skills` describes those that can be loaded.
    """

    kind: ContextPartKind
    tokens: int
    name: str = ""


class ContextUse(msgspec.Struct, frozen=True):
    """What a request to the model holds.

    `window` is the context window, of which `reserved` tokens are kept for the reply.
    """

    window: int
    reserved: int
    parts: tuple[ContextPart, ...]


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens of one model."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0

    def cost(self, usage: Usage) -> float:
        """Return the cost of the usage in US dollars."""
        return (
            self.input * usage.input_tokens
            + self.output * usage.output_tokens
            + self.cache_read * usage.cache_read_tokens
            + self.cache_write * usage.cache_write_tokens
        ) / 1_000_000


class PriceTable(msgspec.Struct, frozen=True):
    """Prices by model. A dated or tagged name falls back to the longest known prefix.

    `claude-x-20260101` and `claude-x:latest` have the price of `claude-x`, `claude-xl` does not.
    """

    prices: Mapping[str, Price] = {}

    def price(self, model: str) -> Price | None:
        """Return the price of a model, None if it is unknown."""
        known = max((name for name in self.prices if _extends(model, name)), key=len, default=None)
        return None if known is None else self.prices[known]

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return the cost of the usage in US dollars, None without a price for the model."""
        price = self.price(model)
        return None if price is None else price.cost(usage)


def _extends(model: str, name: str) -> bool:
    """Return True if the name is a prefix of the model that ends at a word boundary."""
    splits_word = name[-1:].isalnum() and model[len(name) : len(name) + 1].isalnum()
    return model.startswith(name) and not splits_word


class RunLimits(msgspec.Struct, frozen=True):
    """The limits of a run; None for no limit. Waiting does not count to the timeout.

    `max_cost` is in US dollars. `max_tokens` limits the tokens of models without a known price,
    whose cost is unknown. The daily limits are those of the person whose task it is, for all runs
    of a day (UTC). `max_running` limits how many runs of that person run at once, `max_waiting`
    how many tasks wait to be started.
    """

    max_iterations: int = 60
    max_cost: float | None = None
    timeout_seconds: float = 1800.0
    max_consecutive_tool_failures: int = 6
    max_tokens: int | None = None
    max_daily_cost: float | None = None
    max_daily_tokens: int | None = None
    max_running: int | None = None
    max_waiting: int | None = None

    @property
    def has_daily_limit(self) -> bool:
        """Whether today's usage of the person must be known."""
        return self.max_daily_cost is not None or self.max_daily_tokens is not None


class PersonUsage(msgspec.Struct, frozen=True):
    """The usage of a person's tasks.

    `cost` covers models with a known price, in US dollars, and `unpriced_tokens` the other models.
    """

    cost: float
    unpriced_tokens: int

    def exceeds(self, limits: RunLimits) -> bool:
        """Return True if a daily limit is reached."""
        cost, tokens = limits.max_daily_cost, limits.max_daily_tokens
        return (cost is not None and self.cost >= cost) or (
            tokens is not None and self.unpriced_tokens >= tokens
        )


UsageKey = Literal["day", "session", "model"]


class UsageSum(msgspec.Struct, frozen=True):
    """Usage of a day, session or model. `cost` covers models with a known price, in US dollars."""

    key: str
    usage: Usage
    cost: float | None
