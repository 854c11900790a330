"""The clients of this process that wait for answers."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager


class AnswerReaders:
    """Counts clients by the names of what they wait for, such as the id of a run."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def count(self, name: str) -> int:
        """Return how many clients wait for what has this name."""
        return self._counts[name]

    @contextmanager
    def waiting(self, name: str) -> Generator[None]:
        """Count a client for the length of a block."""
        self._counts[name] += 1
        try:
            yield
        finally:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]
