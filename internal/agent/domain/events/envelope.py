"""The event envelope, its encoding, and the record that carries both."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, NamedTuple, Self

import msgspec
from msgspec import UNSET, UnsetType

from internal.agent.domain import ids
from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.events.types import EVENTS, Event, NodeKind, NodeStarted
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.secrets import mask_secrets_in_json
from internal.agent.domain.tasks import Run

VERSION = 1


class RunIds(msgspec.Struct, frozen=True):
    """The ids that the events of a run share."""

    session_id: SessionId
    task_id: TaskId
    run_id: RunId
    parent_run_id: RunId | None = None
    correlation_id: RunId | None = None
    causation_id: str | None = None
    subtask: Subtask | None = None

    @classmethod
    def of(cls, run: Run) -> Self:
        """Return the ids of a run."""
        place = run.subtask
        ids = cls(run.session_id, run.task_id, run.id, run.parent_run_id)
        if place is None:
            return ids
        return msgspec.structs.replace(
            ids, correlation_id=place.root_run_id, causation_id=place.call_id, subtask=place
        )


class WorkflowEventEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """An event with its ids. An ephemeral event has neither `event_id` nor `seq`.

    The members about subtasks are those of a run that another one created.
    """

    version: int
    event_id: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    timestamp: str
    session_id: SessionId
    task_id: TaskId
    run_id: RunId
    parent_run_id: RunId | UnsetType = UNSET
    agent_level: Literal["core", "subagent"]
    correlation_id: RunId
    causation_id: str | UnsetType = UNSET
    log_id: str
    event: str
    node_id: str | UnsetType = UNSET
    node_kind: NodeKind | UnsetType = UNSET
    is_subtask: bool
    subtask_index: int | UnsetType = UNSET
    total_subtasks: int | UnsetType = UNSET
    subtask_preview: str | UnsetType = UNSET
    max_parallel: int | UnsetType = UNSET
    payload: Event


def rfc3339(moment: datetime) -> str:
    """Return a time as RFC 3339 in UTC with milliseconds, such as `2026-01-31T08:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds_between(start: str, end: str) -> int:
    """Return the time between two RFC 3339 times, 0 if the clock was set back."""
    passed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return max(0, round(passed.total_seconds() * 1000))


def wrap_event(run: RunIds, event: Event, timestamp: str, seq: int | None) -> WorkflowEventEnvelope:
    """Return the envelope of an event. Ephemeral events have the `seq` None."""
    return _wrap_like(_first_envelope(run), event, timestamp, seq)


def wrap_ephemeral(
    other: WorkflowEventEnvelope, event: Event, timestamp: str
) -> WorkflowEventEnvelope:
    """Return the envelope of an ephemeral event of the run of another envelope."""
    return _wrap_like(other, event, timestamp, None)


def _wrap_like(
    other: WorkflowEventEnvelope, event: Event, timestamp: str, seq: int | None
) -> WorkflowEventEnvelope:
    node_id, node_kind = event.node() or (UNSET, UNSET)
    return msgspec.structs.replace(
        other,
        event_id=UNSET if seq is None else ids.event_id(other.run_id, seq),
        seq=UNSET if seq is None else seq,
        timestamp=timestamp,
        event=event.name,
        node_id=node_id,
        node_kind=node_kind,
        payload=event,
    )


_FIRST_EVENT = NodeStarted(node_id="")


@lru_cache(maxsize=1024)
def _first_envelope(run: RunIds) -> WorkflowEventEnvelope:
    """Return an envelope of a run, from which the others are made: that takes a third."""
    place = run.subtask
    return WorkflowEventEnvelope(
        version=VERSION,
        event_id=ids.event_id(run.run_id, 0),
        seq=0,
        timestamp="",
        session_id=run.session_id,
        task_id=run.task_id,
        run_id=run.run_id,
        parent_run_id=run.parent_run_id or UNSET,
        agent_level="subagent" if run.parent_run_id else "core",
        correlation_id=run.correlation_id or run.run_id,
        causation_id=run.causation_id or UNSET,
        log_id=ids.log_id(run.run_id),
        event=_FIRST_EVENT.name,
        node_id=_FIRST_EVENT.node_id,
        node_kind=_FIRST_EVENT.kind,
        is_subtask=run.parent_run_id is not None,
        subtask_index=UNSET if place is None else place.number,
        total_subtasks=UNSET if place is None else place.total,
        subtask_preview=UNSET if place is None else place.preview,
        max_parallel=UNSET if place is None else place.max_parallel,
        payload=_FIRST_EVENT,
    )


_encoder = msgspec.json.Encoder()


def encode_envelope(envelope: WorkflowEventEnvelope) -> bytes:
    """Return the envelope as UTF-8 JSON on one line, with every secret masked."""
    return mask_secrets_in_json(_encoder.encode(envelope))


def split_envelope(json: bytes) -> tuple[str | None, str]:
    """Return `node_id`, None without a node, and `payload` of an encoded envelope, both as JSON.

    A quote within a text is escaped, so the names of members are found where they stand.
    """
    before, _, payload = json.partition(b',"payload":')
    _, _, node = before.partition(b',"node_id":')
    node_id, _, _ = node.partition(b',"node_kind":')
    return node_id.decode() or None, payload[:-1].decode()


class EnvelopeTemplate(NamedTuple):
    """The parts that all encoded envelopes of the durable events of a run share.

    With the other parts of an event, an envelope is
    `{start}{seq}","seq":{seq},"timestamp":"{timestamp}{ids}{event}"{node}{end}{payload}}}`, where
    `node` is `,"node_id":{node_id},"node_kind":"{node_kind}"`, or nothing without a node.
    """

    start: str
    ids: str
    end: str

    @classmethod
    def of(cls, run: RunIds) -> Self:
        """Return the template of a run."""
        first = _encoder.encode(_first_envelope(run)).decode()
        before, _, after = first.partition(f'{_FIRST_EVENT.name}","node_id":"","node_kind":"step"')
        start, _, ids = before.partition('0","seq":0,"timestamp":"')
        return cls(start, ids, after.removesuffix(_encoder.encode(_FIRST_EVENT).decode() + "}"))

    @classmethod
    def of_core_run(cls, session_id: SessionId, task_id: TaskId, run_id: RunId) -> Self:
        """Return the template of a run that no other one created, several times as fast as `of`."""
        ksuid = ids.ksuid_part(run_id)
        before_session, before_task, before_run, before_root, before_log, rest = _CORE_IDS
        shared = (
            f"{before_session}{session_id}{before_task}{task_id}"
            f"{before_run}{ksuid}{before_root}{ksuid}{before_log}{ksuid}{rest}"
        )
        return cls(f"{_CORE_START}{ksuid}-", shared, _CORE.end)


_CORE = EnvelopeTemplate.of(RunIds(SessionId("{id}"), TaskId("{id}"), RunId("run-{id}")))
_CORE_START = _CORE.start.removesuffix("{id}-")
_CORE_IDS = _CORE.ids.split("{id}")


INNER_EVENTS = frozenset(event.name for event in EVENTS if event.inner)
"""The names of the events that only subscribers with `debug` receive."""


class EventRecord(msgspec.Struct, eq=False):
    """One workflow event and its envelope as JSON, encoded once and shared by all readers.

    `position` orders the stored events of all sessions. An ephemeral event has neither `position`
    nor `seq`: both are 0. `envelope` is None for an event that was read from the log or delivered.
    A channel may cache its own form of the event in `rendered`.
    """

    session_id: SessionId
    run_id: RunId
    event: str
    json: bytes
    position: int = 0
    seq: int = 0
    envelope: WorkflowEventEnvelope | None = None
    rendered: bytes | None = None

    def __eq__(self, other: object) -> bool:
        """Compare the stored or delivered values, ignoring cached ones."""
        if not isinstance(other, EventRecord):
            return NotImplemented
        return (self.json, self.position, self.event) == (other.json, other.position, other.event)

    __hash__ = None  # type: ignore[assignment]  # as for every class whose instances change

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
