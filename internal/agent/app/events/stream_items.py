"""Frames: what a watcher receives. Encoded once, shared by all who watch."""

from dataclasses import dataclass, field

from internal.agent.domain.events.envelope import WorkflowEventEnvelope, encode_envelope
from internal.agent.domain.events.types import EVENTS
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.store.events import StoredEvent

INNER = frozenset(event.name for event in EVENTS if event.inner)


@dataclass(slots=True)
class Frame:
    """One envelope on its way. `position` is 0 for an ephemeral one, `json` the whole envelope.

    `rendered` is a place for one door to keep its own form of the frame, made at most once.
    """

    position: int
    session_id: SessionId
    run_id: RunId
    event: str
    json: bytes
    node_id: str = ""
    rendered: bytes | None = field(default=None, repr=False)

    @property
    def inner(self) -> bool:
        """Say whether only watchers with `debug` are shown this."""
        return self.event in INNER


def from_log(row: StoredEvent) -> Frame:
    """Return the frame of a stored event."""
    return Frame(row.position, row.session_id, row.run_id, row.event, row.envelope)


def from_envelope(envelope: WorkflowEventEnvelope, position: int, json: bytes | None) -> Frame:
    """Return the frame of an envelope; `json` is its encoding when it was stored already."""
    node = envelope.payload.node()
    return Frame(
        position,
        envelope.session_id,
        envelope.run_id,
        envelope.event,
        encode_envelope(envelope) if json is None else json,
        node[0] if node else "",
    )
