"""Recording: durable events get their numbers, their envelopes and their places in the log."""

from collections.abc import Sequence
from typing import NamedTuple

from internal.agent.app.events.broadcaster import Delivery
from internal.agent.domain import ids as new
from internal.agent.domain.events.envelope import RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.event import Event
from internal.agent.store.database import Write
from internal.agent.store.events import EventStore, NumberedEvent


class Stamped(NamedTuple):
    """A durable event and when it happened, RFC 3339."""

    event: Event
    timestamp: str


def record(
    log: EventStore, ids: RunIds, first_seq: int, events: Sequence[Stamped]
) -> Write[list[Delivery]]:
    """Store durable events under the numbers from `first_seq` on; return what is to be shown."""
    numbered: list[NumberedEvent] = []
    envelopes = []
    for seq, (event, timestamp) in enumerate(events, first_seq):
        envelope = wrap_event(ids, event, timestamp, seq)
        envelopes.append(envelope)
        numbered.append(
            NumberedEvent(
                ids.session_id,
                ids.task_id,
                ids.run_id,
                seq,
                new.event_id(ids.run_id, seq),
                event.name,
                encode_envelope(envelope),
                timestamp,
            )
        )
    positions = yield from log.append(numbered)
    return [
        Delivery(envelope, position, row.envelope)
        for envelope, position, row in zip(envelopes, positions, numbered, strict=True)
    ]


def record_resting(
    log: EventStore, ids: RunIds, events: Sequence[Event], timestamp: str
) -> Write[list[Delivery]]:
    """Store events of a run that is queued or waiting.

    Raises:
        Conflict: it is running or has ended.
    """
    first = yield from log.reserve_seqs_of_idle_run(ids.run_id, len(events))
    stamped = [Stamped(event, timestamp) for event in events]
    return (yield from record(log, ids, first, stamped))
