"""Finds the tool that a server refuses without naming it.

The tools of MCP servers are suspected. A part of them is held back from each request, the newest
first: an answer says that what was offered is taken, a refusal that it is not. An answer is never
thrown away, so the search costs a request only where the server refuses one.
"""

from collections.abc import Collection
from typing import Any

import msgspec
from msgspec.structs import replace


class ToolSearch(msgspec.Struct, frozen=True):
    """The state of a search.

    Attributes:
        suspects: tools of which the server refuses at least one, as far as is known.
        unknown: tools that are held back until the search has ended.
        is_certain: whether a request without `suspects` was taken.
        words: what the server said.
    """

    suspects: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    is_certain: bool = False
    words: str = ""

    @property
    def held(self) -> frozenset[str]:
        """The tools that the next request does not offer: the newer half of the suspects."""
        return frozenset((*self._newer, *self.unknown))

    @property
    def found(self) -> str:
        """The tool that the server refuses, "" while the search goes on."""
        return self.suspects[0] if self.is_certain and len(self.suspects) == 1 else ""

    def as_fields(self) -> dict[str, Any]:
        """Return the state as a lesson keeps it."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

    def with_refusal(self) -> "ToolSearch | None":
        """Return the search after a refused request; None if no suspect can be the reason."""
        older = self.suspects[: len(self.suspects) // 2]
        if not older:
            return None
        return ToolSearch(older, (*self._newer, *self.unknown), words=self.words)

    def with_answer(self) -> "ToolSearch":
        """Return the search after a request that was taken."""
        return ToolSearch(self._newer, self.unknown, is_certain=True, words=self.words)

    def among(self, offered: Collection[str]) -> "ToolSearch | None":
        """Return the search among tools that still exist; None if no suspect does."""
        suspects = tuple(name for name in self.suspects if name in offered)
        if not suspects:
            return None
        unknown = tuple(name for name in self.unknown if name in offered)
        return replace(self, suspects=suspects, unknown=unknown)

    @property
    def _newer(self) -> tuple[str, ...]:
        return self.suspects[len(self.suspects) // 2 :]
