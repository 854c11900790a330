"""ModelBook: what is known of models: their limits and their prices."""

from collections.abc import Callable
from dataclasses import dataclass

from internal.agent.domain.usage import PriceTable
from internal.agent.ports.llm import ModelLimits


@dataclass(frozen=True, slots=True)
class ModelBook:
    """Limits and prices by model name."""

    prices: PriceTable
    limits: Callable[[str], ModelLimits]
    temperature: float | None = None
