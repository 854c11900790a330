"""The event record: one event as it is stored, delivered and received."""

from dataclasses import dataclass, field
from typing import Self

from internal.agent.domain.events.envelope import WorkflowEventEnvelope, encode_envelope
from internal.agent.domain.events.types import EVENTS
from internal.agent.domain.ids import RunId, SessionId

INNER_EVENTS = frozenset(event.name for event in EVENTS if event.inner)


@dataclass(slots=True)
class EventRecord:
    """One workflow event and its envelope as JSON, encoded once and shared by all readers.

    `position` orders the stored events of all sessions. An ephemeral event has neither `position`
    nor `seq`: both are 0. `envelope` is None for an event that was read from the log. A channel may
    cache its own form of the event in `rendered`.
    """

    session_id: SessionId
    run_id: RunId
    event: str
    json: bytes
    position: int = 0
    seq: int = 0
    envelope: WorkflowEventEnvelope | None = field(default=None, repr=False, compare=False)
    rendered: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def inner(self) -> bool:
        """Whether only subscribers with `debug` receive this event."""
        return self.event in INNER_EVENTS

    @classmethod
    def ephemeral(cls, envelope: WorkflowEventEnvelope) -> Self:
        """Return the record of an event that is delivered but not stored."""
        return cls(
            envelope.session_id,
            envelope.run_id,
            envelope.event,
            encode_envelope(envelope),
            envelope=envelope,
        )
