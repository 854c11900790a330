"""The base class of events, and the kinds of nodes."""

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
    """An event of a run. A `durable` event is numbered and stored before delivery."""

    name: ClassVar[str]
    durable: ClassVar[bool] = True
    terminal: ClassVar[bool] = False
    inner: ClassVar[bool] = False
    """Sent on a stream only with `debug=1`."""

    def node(self) -> tuple[str, NodeKind] | None:
        """Return the id and the kind of the node of the event, None without a node."""
        return None
