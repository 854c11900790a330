"""Control frames: messages about the stream itself. Never stored, without an envelope."""

from typing import ClassVar

import msgspec
from msgspec import UNSET, UnsetType


class ControlFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A frame about the stream. The struct is the data of the frame."""

    name: ClassVar[str]


class Connected(ControlFrame, frozen=True, kw_only=True):
    """The first frame of a stream. `head` and `earliest` are wire ids."""

    name: ClassVar[str] = "connected"
    session_id: str | UnsetType = UNSET
    sessions: tuple[str, ...] | UnsetType = UNSET
    head: str
    earliest: str
    active_run_id: str | None
    server_version: str


class ReplayDone(ControlFrame, frozen=True, kw_only=True):
    """The replay is complete; live events follow."""

    name: ClassVar[str] = "replay.done"
    head: str


class StreamReset(ControlFrame, frozen=True, kw_only=True):
    """The cursor is not valid: drop all state and read again from `earliest`."""

    name: ClassVar[str] = "stream.reset"
    reason: str
    earliest: str
    head: str


class StreamDropped(ControlFrame, frozen=True, kw_only=True):
    """The client was too slow: ephemeral events after `since` are dropped; partials follow."""

    name: ClassVar[str] = "workflow.stream.dropped"
    since: str
    nodes: tuple[str, ...]


class Heartbeat(ControlFrame, frozen=True, kw_only=True):
    """Sent every 15 s. `t` is RFC 3339, `head` the newest wire id."""

    name: ClassVar[str] = "hb"
    t: str
    head: str


class Bye(ControlFrame, frozen=True, kw_only=True):
    """The server closes the stream; reconnect after `retry` milliseconds."""

    name: ClassVar[str] = "bye"
    retry: int


CONTROLS: tuple[type[ControlFrame], ...] = (
    Connected,
    ReplayDone,
    StreamReset,
    StreamDropped,
    Heartbeat,
    Bye,
)
"""Every control frame of a stream."""
