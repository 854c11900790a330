"""Control frames: messages about the stream itself. Never stored, without an envelope."""

import msgspec
from msgspec import UNSET, UnsetType


class _Tag:
    """The tag of a struct, as an attribute of its class and of its instances."""

    def __get__(self, _frame: object, kind: type[msgspec.Struct]) -> str:
        return str(kind.__struct_config__.tag)


class ControlFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """A frame about the stream. The struct is the data of the frame, with `name` as `event`."""

    name = _Tag()


class Connected(ControlFrame, frozen=True, kw_only=True, tag="connected"):
    """The first frame of a stream. `head` and `earliest` are wire ids."""

    session_id: str | UnsetType = UNSET
    sessions: tuple[str, ...] | UnsetType = UNSET
    head: str
    earliest: str
    active_run_id: str | None
    server_version: str


class ReplayDone(ControlFrame, frozen=True, kw_only=True, tag="replay.done"):
    """The replay is complete; live events follow."""

    head: str


class StreamReset(ControlFrame, frozen=True, kw_only=True, tag="stream.reset"):
    """The cursor is not valid: drop all state and read again from `earliest`."""

    reason: str
    earliest: str
    head: str


class StreamDropped(ControlFrame, frozen=True, kw_only=True, tag="workflow.stream.dropped"):
    """The client was too slow: ephemeral events after `since` are dropped; partials follow."""

    since: str
    nodes: tuple[str, ...]


class Heartbeat(ControlFrame, frozen=True, kw_only=True, tag="hb"):
    """Sent every 15 s, and to move the cursor. `t` is RFC 3339, `head` the newest wire id."""

    t: str
    head: str


class Bye(ControlFrame, frozen=True, kw_only=True, tag="bye"):
    """The server closes the stream; reconnect after `retry` milliseconds."""

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
