"""Counts of the repaired calls of each model in this process."""

import logging
from collections import Counter
from collections.abc import Iterable

logger = logging.getLogger(__name__)

MAX_MODELS = 200
"""Models with counts of their own; a name comes from the server, which may send any number."""
OTHER_MODELS = "other"


class CallRepairCounts:
    """Counts repaired calls by model and kind; see `RepairKind`."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def add(self, model: str, kinds: Iterable[str]) -> None:
        """Count the repairs of a reply, and log them."""
        found = Counter(kinds)
        if not found:
            return
        if model not in self._counts and len(self._counts) >= MAX_MODELS:
            model = OTHER_MODELS
        self._counts.setdefault(model, Counter()).update(found)
        logger.info("calls repaired", extra={"model": model, "repairs": ", ".join(sorted(found))})

    def by_model(self) -> dict[str, dict[str, int]]:
        """Return the number of repairs by model and kind."""
        return {model: dict(sorted(found.items())) for model, found in self._counts.items()}
