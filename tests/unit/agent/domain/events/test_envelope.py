"""The envelope of an event."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from internal.agent.domain.events.envelope import RunIds, encode_envelope, rfc3339, wrap_event
from internal.agent.domain.events.types import LifecycleUpdated, NodeStarted, OutputDelta
from internal.agent.domain.ids import RunId, SessionId, TaskId

CORE = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-2Abc"))
NOW = "2026-01-31T08:00:00.000Z"


def test_a_durable_event_of_a_core_run() -> None:
    line = encode_envelope(
        wrap_event(CORE, NodeStarted(node_id="iter:1", kind="iteration"), NOW, 7)
    )
    assert json.loads(line) == {
        "version": 1,
        "event_id": "evt-2Abc-7",
        "seq": 7,
        "timestamp": NOW,
        "session_id": "session-1",
        "task_id": "task-1",
        "run_id": "run-2Abc",
        "agent_level": "core",
        "correlation_id": "run-2Abc",
        "log_id": "log-2Abc",
        "event": "workflow.node.started",
        "node_id": "iter:1",
        "node_kind": "iteration",
        "is_subtask": False,
        "payload": {"node_id": "iter:1", "kind": "iteration"},
    }


def test_an_ephemeral_event_of_a_subagent() -> None:
    run = RunIds(
        SessionId("session-1"),
        TaskId("task-2"),
        RunId("run-3Def"),
        parent_run_id=RunId("run-2Abc"),
        correlation_id=RunId("run-1Root"),
        causation_id="call-1",
    )
    envelope = json.loads(
        encode_envelope(wrap_event(run, OutputDelta(node_id="a", k=1, n=1, text="x"), NOW, None))
    )
    assert not {"event_id", "seq"} & envelope.keys()
    assert envelope["agent_level"] == "subagent"
    assert envelope["is_subtask"] is True
    assert envelope["parent_run_id"] == "run-2Abc"
    assert envelope["correlation_id"] == "run-1Root"
    assert envelope["causation_id"] == "call-1"


def test_an_event_without_a_node() -> None:
    envelope = json.loads(
        encode_envelope(wrap_event(CORE, LifecycleUpdated(status="queued", phase="accept"), NOW, 1))
    )
    assert not {"node_id", "node_kind"} & envelope.keys()


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 31, 8, tzinfo=UTC), "2026-01-31T08:00:00.000Z"),
        (datetime(2026, 1, 31, 8, 0, 0, 999_999, tzinfo=UTC), "2026-01-31T08:00:00.999Z"),
        (
            datetime(2026, 1, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))),
            "2025-12-31T23:30:00.000Z",
        ),
    ],
)
def test_timestamps_are_in_utc_with_milliseconds(moment: datetime, text: str) -> None:
    assert rfc3339(moment) == text
