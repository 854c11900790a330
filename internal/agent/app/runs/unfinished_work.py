"""Open ends: what a run's log says was begun and not finished."""

from collections.abc import Iterable
from typing import Any

import msgspec

from internal.agent.domain.events.event import Event, NodeKind
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.events.types import NodeFailed, ToolCompleted

UNKNOWN = "interrupted, outcome unknown"
INTERRUPTED = "interrupted"


class _Begun(msgspec.Struct):
    """The few fields of a stored envelope that matter here."""

    event: str
    node_id: str = ""
    node_kind: NodeKind = "step"
    payload: dict[str, Any] = {}


def find_unfinished_work(
    log: Iterable[EventRecord], keep: frozenset[str] = frozenset(), error: str = INTERRUPTED
) -> list[Event]:
    """Return the events that close what is open; calls in `keep` stay open: they run again.

    Steps of the plan are not closed: their state is the plan's.
    """
    nodes: dict[str, _Begun] = {}
    calls: dict[str, _Begun] = {}
    for record in log:
        match record.event:
            case "workflow.node.started":
                begun = msgspec.json.decode(record.json, type=_Begun)
                if not begun.node_id.startswith("step:"):
                    nodes[begun.node_id] = begun
            case "workflow.node.completed" | "workflow.node.failed":
                nodes.pop(msgspec.json.decode(record.json, type=_Begun).node_id, None)
            case "workflow.tool.started":
                begun = msgspec.json.decode(record.json, type=_Begun)
                calls[begun.node_id] = begun
            case "workflow.tool.completed":
                calls.pop(msgspec.json.decode(record.json, type=_Begun).node_id, None)
            case _:
                pass
    closing: list[Event] = [
        ToolCompleted(
            call_id=call_id,
            tool_name=begun.payload.get("tool_name", ""),
            duration_ms=0,
            error=UNKNOWN,
        )
        for call_id, begun in calls.items()
        if call_id not in keep
    ]
    # the inner ones first: an iteration ends before its stage
    for node_id, begun in reversed(nodes.items()):
        closing.append(
            NodeFailed(
                node_id=node_id,
                kind=begun.node_kind,
                phase=node_id.partition(":")[0],
                error=error,
                recoverable=True,
            )
        )
    return closing
