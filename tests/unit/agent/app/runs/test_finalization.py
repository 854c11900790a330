"""The result of a run, and the events that close what its log leaves open."""

from functools import partial

import pytest

from internal.agent.app.runs.active import claim_run
from internal.agent.app.runs.creation import new_task_ids
from internal.agent.app.runs.finalization import (
    INTERRUPTED,
    find_unfinished_work,
    requeue_run,
    summarize,
)
from internal.agent.domain.errors import LeaseLost
from internal.agent.domain.events.envelope import EventRecord, RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.types import (
    Event,
    LifecycleUpdated,
    NodeCompleted,
    NodeFailed,
    NodeStarted,
    ToolCompleted,
    ToolStarted,
)
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.messages import user_message
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.react.turn import OUTCOME_UNKNOWN
from internal.agent.domain.tasks import StopRequest
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T1, a_run, a_session, a_task, add_running_run

IDS = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-1"))


def log(*events: Event) -> list[EventRecord]:
    return [
        EventRecord(
            IDS.session_id,
            IDS.run_id,
            event.name,
            encode_envelope(wrap_event(IDS, event, "2026-01-31T08:00:00.000Z", seq)),
        )
        for seq, event in enumerate(events, 1)
    ]


def begun(node_id: str) -> NodeStarted:
    return NodeStarted(node_id=node_id, kind="iteration" if ":" in node_id else "step")


def done(node_id: str) -> NodeCompleted:
    return NodeCompleted(node_id=node_id, duration_ms=1)


def failed(node_id: str) -> NodeFailed:
    return NodeFailed(node_id=node_id, phase="think", error="x", recoverable=False)


def called(call_id: str) -> ToolStarted:
    return ToolStarted(call_id=call_id, tool_name="shell", arguments={}, iteration=1, risk="exec")


def returned(call_id: str) -> ToolCompleted:
    return ToolCompleted(call_id=call_id, tool_name="shell", duration_ms=1)


def closed(*node_ids: str, error: str = INTERRUPTED) -> list[Event]:
    return [
        NodeFailed(
            node_id=node_id,
            kind="iteration" if ":" in node_id else "step",
            phase=node_id.partition(":")[0],
            error=error,
            recoverable=True,
        )
        for node_id in node_ids
    ]


def unknown(*call_ids: str) -> list[Event]:
    return [
        ToolCompleted(call_id=each, tool_name="shell", duration_ms=0, error=OUTCOME_UNKNOWN)
        for each in call_ids
    ]


def test_a_finished_log_has_no_unfinished_work() -> None:
    assert find_unfinished_work([]) == []
    events = [begun("execute"), begun("iter:1"), called("a"), returned("a"), done("iter:1")]
    assert find_unfinished_work(log(*events, failed("iter:2:say"), done("execute"))) == []


def test_calls_are_closed_first_and_then_nodes_from_the_inside() -> None:
    events = [begun("prepare"), done("prepare"), begun("execute"), begun("iter:1"), done("iter:1")]
    events2 = [begun("iter:2"), called("a"), called("b"), returned("a"), called("c")]
    assert find_unfinished_work(log(*events, *events2)) == [
        *unknown("b", "c"),
        *closed("iter:2", "execute"),
    ]


def test_calls_that_run_again_stay_open() -> None:
    events = log(begun("execute"), called("a"), called("b"))
    assert find_unfinished_work(events, frozenset({"a"})) == [*unknown("b"), *closed("execute")]


def test_the_error_can_be_chosen() -> None:
    assert find_unfinished_work(log(begun("execute")), error="stopped") == closed(
        "execute", error="stopped"
    )


def test_plan_steps_and_other_events_are_ignored() -> None:
    events = log(
        LifecycleUpdated(status="running", phase="execute"),
        NodeStarted(node_id="step:1", step_index=1, step_description="Look"),
    )
    assert find_unfinished_work(events) == []


def test_a_restarted_node_is_closed_once() -> None:
    events = log(begun("execute"), begun("iter:1"), failed("iter:1"), begun("iter:1"))
    assert find_unfinished_work(events) == closed("iter:1", "execute")
    again = log(*[begun("execute"), begun("execute")])
    assert find_unfinished_work(again) == closed("execute")


def test_closing_twice_finds_nothing() -> None:
    events: list[Event] = [begun("execute"), begun("iter:1"), called("a")]
    closing = find_unfinished_work(log(*events))
    assert find_unfinished_work(log(*events, *closing)) == []


def test_a_run_without_a_turn_leaves_its_instruction_and_its_error() -> None:
    task, outcome = a_task(instruction="count\nto ten"), TurnOutcome("error", "", "no key")
    result = summarize(a_run(fence=1), task, None, outcome, ended=T1)
    assert result.end.status == "failed"
    assert (result.end.error, result.end.usage, result.end.cost) == ("no key", Usage(), None)
    assert result.end.ended == T1
    assert [*result.messages] == [user_message(task.instruction)]
    assert result.usage == {}
    assert result.title == "count"
    assert not result.silent
    assert not summarize(a_run(fence=0), task, None, outcome, ended=T1).messages


async def test_a_run_is_requeued_once_unless_it_was_asked_to_stop(
    database: Database, stores: Stores
) -> None:
    task = a_task()
    await database.write(lambda: stores.sessions.add(a_session()))
    await database.write(lambda: stores.tasks.add(task, None))
    run = await add_running_run(database, stores, a_run())
    requeue = partial(requeue_run, stores, run, ids=new_task_ids(), now=T1)
    assert await database.write(requeue) == []
    stored = await database.read(partial(stores.tasks.get, task.id))
    assert stored is not None
    assert stored.status == "queued"
    with pytest.raises(LeaseLost):
        await database.write(requeue)

    claim = partial(claim_run, stores, run.id, "one", lease_until=T1, now=T1)
    claimed = await database.write(claim)
    assert claimed is not None
    stop = StopRequest("local", "web", "enough")
    assert await database.write(partial(stores.runs.request_stop, run.id, stop))
    events = await database.write(partial(requeue_run, stores, claimed, ids=new_task_ids(), now=T1))
    assert events[-1].event == "workflow.result.cancelled"
    stored = await database.read(partial(stores.tasks.get, task.id))
    assert stored is not None
    assert stored.status == "cancelled"
