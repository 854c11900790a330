"""The clients of this process that wait for answers."""

from collections.abc import Callable, Generator
from contextlib import contextmanager


class AnswerReaders:
    """Counts waiting clients by name, such as the id of the run they wait for."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Callable[[], bool]]] = {}

    def count(self, name: str) -> int:
        """Return the number of clients that wait under this name."""
        return sum(not has_left() for has_left in self._waiting.get(name, ()))

    @contextmanager
    def waiting(self, name: str, has_left: Callable[[], bool]) -> Generator[None]:
        """Count a client for the length of a block, unless it has left."""
        clients = self._waiting.setdefault(name, [])
        clients.append(has_left)
        try:
            yield
        finally:
            clients.remove(has_left)
            if not clients:
                del self._waiting[name]
