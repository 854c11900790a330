"""The result of a run, and the events that close the open parts of its log."""

from functools import partial

import pytest

from internal.agent.app.runs.active import claim_run
from internal.agent.app.runs.creation import new_task_ids
from internal.agent.app.runs.finalization import (
    INTERRUPTED,
    LEFT_CHAT,
    RECALLED,
    finalize_run,
    find_unfinished_work,
    requeue_run,
    summarize,
)
from internal.agent.domain.chats import OutgoingMessage
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
from internal.agent.domain.tasks import Attachment, Origin, StopRequest
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import (
    T1,
    T2,
    a_run,
    a_session,
    a_task,
    add_running_run,
    an_artifact,
)

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


CHAT = Origin("lark", "lark:cli_a:ou_1", "cli_a", "oc_1", "om_1")


async def end_with_files(
    database: Database, stores: Stores, outcome: TurnOutcome, count: int, origin: Origin = CHAT
) -> list[OutgoingMessage]:
    """End a run that made some files, each in two versions; return all messages that it sends."""
    task = a_task(origin=origin)
    await database.write(lambda: stores.sessions.add(a_session()))
    await database.write(lambda: stores.tasks.add(task, None))
    run = await add_running_run(database, stores, a_run())
    for number in range(2 * count):
        name = f"charts/{number % count}.png"
        made = an_artifact(number, name=name, caption="Sales")
        await database.write(partial(stores.artifacts.add, made, task))
    result = summarize(run, task, None, outcome, ended=T1)
    work = partial(finalize_run, stores, run, task, result=result, ids=new_task_ids())
    await database.write(work)
    sent: list[OutgoingMessage] = []
    while True:
        due = partial(stores.outbox.list_due, "lark", "cli_a", now=T2, limit=10)
        pending = await database.read(due)
        if not pending:
            return sent
        assert len(pending) == 1  # one after the other: the files follow the reply
        sent.append(pending[0].outgoing)
        await database.write(partial(stores.outbox.mark_sent, pending[0].number, "om_2", T2))


DONE = TurnOutcome("final_answer", "Here they are.")


async def test_the_last_versions_of_files_follow_the_reply(
    database: Database, stores: Stores
) -> None:
    reply, *files = await end_with_files(database, stores, DONE, 2)
    assert (reply.key, reply.body, reply.attachments) == ("run-1:answer", "Here they are.", ())
    assert [(each.key, each.body, each.reply_to) for each in files] == [
        ("run-1:file:artifact-2", "0.png (2.0 KB)\n1.png (2.0 KB)\nSales", "om_1"),
    ]
    assert [each.attachments for each in files] == [
        (
            Attachment("0.png", "image/png", "attachment:hash-2", "hash-2", 2048),
            Attachment("1.png", "image/png", "attachment:hash-3", "hash-3", 2048),
        )
    ]
    assert {(each.run_id, each.stop_reason, each.chat_id) for each in files} == {
        ("run-1", None, "oc_1")
    }


@pytest.mark.parametrize(("count", "messages"), [(10, 10), (11, 1)])
async def test_more_than_ten_files_are_one_message(
    database: Database, stores: Stores, count: int, messages: int
) -> None:
    named = TurnOutcome("final_answer", " ".join(f"![]({n}.png)" for n in range(count)))
    _, *files = await end_with_files(database, stores, named, count)
    assert len(files) == messages
    names = {file.name for each in files for file in each.attachments}
    folder = "charts/" if messages == 1 else ""
    assert names == {f"{folder}{number}.png" for number in range(count)}
    assert {each.key for each in files} == (
        {"run-1:files"}
        if messages == 1
        else {f"run-1:file:artifact-{number}" for number in range(count, 2 * count)}
    )


@pytest.mark.parametrize(
    ("outcome", "keys"),
    [
        (TurnOutcome("timeout", "", "too slow"), ["run-1:answer", "run-1:file:artifact-1"]),
        (TurnOutcome("error", "", "broke"), ["run-1:answer", "run-1:file:artifact-1"]),
        (TurnOutcome("user_stop", "", "stopped"), ["run-1:answer"]),
        (TurnOutcome("rejected", "", "no"), ["run-1:answer"]),
        (TurnOutcome("user_stop", "", RECALLED), []),
        (TurnOutcome("user_stop", "", LEFT_CHAT), []),
    ],
)
async def test_a_failed_run_sends_its_files_and_a_stopped_one_does_not(
    database: Database, stores: Stores, outcome: TurnOutcome, keys: list[str]
) -> None:
    assert [each.key for each in await end_with_files(database, stores, outcome, 1)] == keys


async def test_a_run_without_a_chat_sends_nothing(database: Database, stores: Stores) -> None:
    assert await end_with_files(database, stores, DONE, 1, Origin("web", "local")) == []
