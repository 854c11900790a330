"""An event: what every event has, and the kinds of nodes that events speak of."""

from typing import ClassVar, Literal

import msgspec

NodeKind = Literal[
    "step",
    "iteration",
    "plan",
    "tool",
    "subflow",
    "result",
    "diagnostic",
    "generation",
    "artifact",
    "question",
]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened in a run. `durable` ones are numbered and stored before delivery."""

    name: ClassVar[str]
    durable: ClassVar[bool] = True
    terminal: ClassVar[bool] = False
    inner: ClassVar[bool] = False
    """Shown on a stream only with `debug=1`."""

    def node(self) -> tuple[str, NodeKind] | None:
        """Return the id and the kind of the node that the event speaks of, if it does."""
        return None
