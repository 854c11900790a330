"""Events: the list is complete, every event survives JSON, every node has an id."""

import json
from typing import Any

import msgspec
import pytest

from internal.agent.domain.events.control import CONTROLS
from internal.agent.domain.events.envelope import RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.types import (
    EVENTS,
    DiagnosticError,
    Event,
    InputReceived,
    NodeFailed,
    NodeKind,
    ToolCompleted,
    ToolStarted,
)
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.text import truncate_arguments, truncate_json
from tests.support.event_samples import FULL, NOW
from tests.support.struct_examples import example, smallest, unset_fields

IDS = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-1"))

EXAMPLES = [event for event, _ in FULL]


def all_below(kind: type[Any]) -> set[type[Any]]:
    return {each for sub in kind.__subclasses__() for each in {sub, *all_below(sub)}}


def test_every_event_is_listed_in_events() -> None:
    assert set(EVENTS) == {each for each in all_below(Event) if each.__module__.startswith("inter")}


def test_event_and_control_names_are_unique() -> None:
    names = [event.name for event in EVENTS] + [control.name for control in CONTROLS]
    assert len(names) == len(set(names))


def test_the_durable_terminal_and_inner_flags() -> None:
    def named(flag: str, *, value: bool) -> set[str]:
        return {event.name for event in EVENTS if getattr(event, flag) is value}

    assert named("durable", value=False) >= {
        "workflow.input.waiting",
        "workflow.node.output.delta",
        "workflow.tool.progress",
        "partial",
        "workflow.session.titled",
        "workflow.feedback.given",
    }
    assert named("terminal", value=True) == {
        "workflow.result.final",
        "workflow.result.cancelled",
    }
    inner = {event.name for event in EVENTS if ".diagnostic." in event.name}
    assert named("inner", value=True) == inner


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.name)
def test_an_event_survives_json(kind: type[Event]) -> None:
    full: Event = example(kind)
    assert unset_fields(full) == set()
    small = smallest(full)
    assert isinstance(small, Event)
    for each in (full, small):
        line = encode_envelope(wrap_event(IDS, each, NOW, 1))
        assert b"\n" not in line
        envelope = json.loads(line)
        assert msgspec.convert(envelope["payload"], type=kind) == each
        assert envelope["event"] == each.name
        assert "name" not in envelope["payload"]
        assert unset_fields(each).isdisjoint(envelope["payload"])


@pytest.mark.parametrize(("event", "node"), FULL, ids=[event.name for event in EXAMPLES])
def test_an_event_has_the_node_of_its_subject(
    event: Event, node: tuple[str, NodeKind] | None
) -> None:
    assert event.node() == node


@pytest.mark.parametrize("sign", ["\x01", "鹭", "🪶", '"', "\ud83d"])
def test_large_and_broken_texts_fit_into_an_event(sign: str) -> None:
    text = truncate_json(sign * 1_000_000)
    arguments = {f"{sign * 300}{n}": sign * 1_000_000 for n in range(3)}
    for event in (
        InputReceived(task=text, channel="web", sender="local", steer=True),
        NodeFailed(node_id="execute", phase="execute", error=text, recoverable=False),
        ToolStarted(
            call_id="c1",
            tool_name="shell",
            arguments=truncate_arguments(arguments),
            iteration=1,
            risk="exec",
        ),
        ToolCompleted(call_id="c1", tool_name="shell", duration_ms=1, error=text),
        DiagnosticError(phase="think", error=text),
    ):
        assert len(msgspec.json.encode(event)) <= 2**16


def test_an_event_has_no_node_by_default() -> None:
    assert Event().node() is None
