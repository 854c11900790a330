"""The text so far of unfinished outputs."""

import msgspec

from internal.agent.app.events.partials import MAX_CHARACTERS, PartialOutputs
from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.events.envelope import RunIds, wrap_event
from internal.agent.domain.events.types import (
    Event,
    NodeFailed,
    OutputDelta,
    OutputSummary,
    Partial,
    ResultFinal,
    ToolCompleted,
    ToolProgress,
)
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.usage import Usage
from tests.support.store_records import T0

IDS = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-1"))
SAY, THINK = "iter:1:say", "iter:1:think"


def collect(*events: Event) -> dict[str, tuple[int, str]]:
    """Return the count and the text by node."""
    outputs = PartialOutputs()
    for event in events:
        outputs.add(wrap_event(IDS, event, "2026", None))
    shown = [each.payload for each in outputs.partials(T0)]
    return {each.node_id: (each.k, each.text) for each in shown if isinstance(each, Partial)}


def delta(k: int, text: str, node_id: str = SAY) -> OutputDelta:
    return OutputDelta(node_id=node_id, k=k, n=1, text=text)


def test_deltas_of_a_node_are_joined() -> None:
    progress = ToolProgress(node_id="call-1", k=3, n=3, text="out")
    assert collect(delta(1, "one "), progress, delta(2, "two")) == {
        SAY: (2, "one two"),
        "call-1": (3, "out"),
    }


def test_a_partial_replaces_the_text() -> None:
    assert collect(delta(1, "lost"), Partial(node_id=SAY, k=0, text=""), delta(1, "new")) == {
        SAY: (1, "new")
    }


def test_a_summary_ends_the_reply_and_its_reasoning() -> None:
    summary = OutputSummary(
        node_id=SAY, iteration=1, content="", tool_call_count=0, llm_duration_ms=1,
        llm_request_id="", llm_model="m", usage=Usage(),
    )  # fmt: skip
    assert collect(delta(1, "hm", THINK), delta(1, "yes"), summary) == {}


def test_failed_nodes_and_completed_calls_are_removed() -> None:
    failed = NodeFailed(
        node_id=SAY, kind="generation", phase="think", error="broken", recoverable=False
    )
    completed = ToolCompleted(call_id="call-1", tool_name="shell", duration_ms=1)
    progress = ToolProgress(node_id="call-1", k=1, n=1, text="out")
    assert collect(delta(1, "one"), progress, failed, completed, failed) == {}


def test_the_end_of_a_run_removes_its_outputs() -> None:
    final = ResultFinal(
        final_answer="", stop_reason="error", total_iterations=1, usage=Usage(), duration_ms=1
    )
    assert collect(delta(1, "one"), final) == {}


def test_a_forgotten_run_has_no_outputs() -> None:
    outputs = PartialOutputs()
    outputs.add(wrap_event(IDS, delta(1, "one"), "2026", None))
    assert [each.run_id for each in outputs.partials(T0)] == [IDS.run_id]
    outputs.forget(IDS.run_id)
    assert outputs.partials(T0) == []


def test_the_text_so_far_has_the_ids_of_its_run() -> None:
    place = Subtask(TaskId("task-0"), RunId("run-0"), "call-1", 1, 3, "reader", "read")
    ids = msgspec.structs.replace(IDS, parent_run_id=RunId("run-0"), subtask=place)
    outputs = PartialOutputs()
    outputs.add(wrap_event(ids, delta(1, "one"), "2026", None))
    [shown] = outputs.partials(T0)
    assert shown == wrap_event(ids, Partial(node_id=SAY, k=1, text="one"), T0, None)


def test_only_the_end_of_a_long_text_is_kept() -> None:
    half = "x" * (MAX_CHARACTERS // 2)
    ((_, text),) = collect(*(delta(k, half) for k in range(1, 7)), delta(7, "end")).values()
    assert len(text) == MAX_CHARACTERS
    assert text.endswith("xend")
