"""The transactions behind submit, steer, interrupt, stop and recall."""

from functools import partial

import msgspec
import pytest

from internal.agent.app.runs.creation import Submission, new_task_ids
from internal.agent.app.runs.finalization import INTERRUPTED_REASON
from internal.agent.app.task_commands import (
    interrupt_session,
    mark_handled,
    steer,
    stop_task,
)
from internal.agent.domain.chats import OutgoingMessage
from internal.agent.domain.errors import Conflict, NotFound, RunStopped
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T1, claim_run
from tests.support.task_commands import ANN, TASK, Commands


@pytest.fixture
def commands(database: Database, stores: Stores) -> Commands:
    return Commands(database, stores)


async def test_an_idempotency_key_returns_the_first_task(commands: Commands) -> None:
    keyed = msgspec.structs.replace(TASK, idempotency_key="key")
    first = await commands.submit(keyed)
    assert await commands.submit(keyed) == first
    assert await commands.submit(keyed, ANN) != first


async def test_a_scope_has_one_current_session(commands: Commands) -> None:
    scoped = msgspec.structs.replace(TASK, scope="oc_1")
    first = await commands.submit(scoped)
    assert (await commands.submit(scoped)).session_id == first.session_id
    assert (await commands.submit()).session_id != first.session_id


async def test_the_session_of_another_person_is_not_found(commands: Commands) -> None:
    own = await commands.submit()
    with pytest.raises(NotFound, match="no session"):
        await commands.submit(msgspec.structs.replace(TASK, session_id=own.session_id), ANN)


async def test_a_message_steers_the_active_run_until_it_is_stopped(
    database: Database, stores: Stores, commands: Commands
) -> None:
    first = await commands.running()
    message = msgspec.structs.replace(TASK, session_id=first.session_id)
    send = partial(steer, stores, message, LOCAL_OWNER, now=T1)
    (steered, is_waiting), created = await database.write(partial(send, ids=new_task_ids()))
    assert (steered.taken_as, steered.run_id) == ("steering", first.run_id)
    assert [each.event for each in created.events] == ["workflow.input.waiting"]
    assert not is_waiting

    stop = RunStopped("local", "web")
    status, running, _ = await database.write(
        partial(stop_task, stores, await commands.task(first), stop, ids=new_task_ids(), now=T1)
    )
    assert (status, running) == ("running", first.run_id)
    (steered, is_waiting), created = await database.write(partial(send, ids=new_task_ids()))
    assert (steered.taken_as, is_waiting) == ("task", False), "the first run is being stopped"
    assert steered.task_id != first.task_id
    assert len(created.events) == 2


async def test_an_interruption_moves_unread_steering_into_the_next_task(
    database: Database, stores: Stores, commands: Commands
) -> None:
    first = await commands.running()
    message = msgspec.structs.replace(TASK, session_id=first.session_id, instruction="faster")
    await database.write(partial(steer, stores, message, LOCAL_OWNER, ids=new_task_ids(), now=T1))
    stop = msgspec.structs.replace(message, instruction="stop")
    submitted, running, _ = await database.write(
        partial(interrupt_session, stores, stop, LOCAL_OWNER, ids=new_task_ids(), now=T1)
    )
    assert running is not None
    assert running.run_id == first.run_id
    assert (await commands.task(submitted)).instruction == "faster\n\nstop"
    requested = (await commands.run(first)).stop
    assert requested is not None
    assert requested.reason == INTERRUPTED_REASON


async def test_a_queued_task_is_cancelled_and_an_ended_one_cannot_be_stopped(
    database: Database, stores: Stores, commands: Commands
) -> None:
    submitted = await commands.submit()
    task = await commands.task(submitted)
    stop = partial(stop_task, stores, task, RunStopped("local", "web"), ids=new_task_ids(), now=T1)
    status, running, events = await database.write(stop)
    assert (status, running) == ("cancelled", None)
    assert [event.event for event in events] == [
        "workflow.lifecycle.updated",
        "workflow.result.cancelled",
    ]
    assert (await commands.task(submitted)).status == "cancelled"
    with pytest.raises(Conflict, match="already ended"):
        await database.write(stop)


async def test_a_message_is_marked_as_handled_once(
    database: Database, stores: Stores, commands: Commands
) -> None:
    submission = await commands.message("m1", "hi")
    assert submission.message is not None
    reply = OutgoingMessage("m1:note", "lark", "app", "oc_1", "m1", "hello")
    work = partial(mark_handled, stores, submission.message, [reply], now=T1)
    assert await database.write(work)
    assert not await database.write(work)
    due = await database.read(partial(stores.outbox.list_due, "lark", "app", now="9999", limit=10))
    assert [each.outgoing for each in due] == [reply]


async def test_recalling_a_message_undoes_what_it_started(
    database: Database, stores: Stores, commands: Commands
) -> None:
    assert await commands.recall("unknown") == ("nothing", None)

    first = await commands.message("m1", "count")
    assert await commands.recall("m1") == ("unqueued", None)
    assert await commands.recall("m1") == ("nothing", None)
    with pytest.raises(Conflict):
        await commands.submit(first, ANN)

    submitted = await commands.submit(await commands.message("m2", "count"), ANN)
    assert await commands.recall("m2") == ("stopped", None)
    assert (await commands.task(submitted)).status == "cancelled"

    submitted = await commands.submit(await commands.message("m3", "count"), ANN)
    await claim_run(database, stores, await commands.run(submitted))
    message = await commands.message("m4", "faster")
    await database.write(partial(steer, stores, message, ANN, ids=new_task_ids(), now=T1))
    assert await commands.recall("m4") == ("unsaid", None)
    assert await commands.recall("m3") == ("stopped", submitted.run_id)


BOB = Principal("lark:app:ou_2", "Bob", frozenset({"talk"}))
BOSS = Principal("lark:app:ou_3", "Boss", frozenset({"talk", "operate"}))


@pytest.mark.parametrize(
    ("principal", "thread_id", "takes"),
    [
        (ANN, "omt_1", True),
        (BOSS, "omt_1", True),
        (LOCAL_OWNER, "omt_1", True),
        (BOB, "omt_1", False),
        (ANN, "", False),
        (BOSS, "omt_2", False),
    ],
)
@pytest.mark.parametrize("verb", ["steer", "interrupt"])
async def test_the_asker_and_operators_steer_and_interrupt_in_the_thread_of_the_run(
    database: Database,
    stores: Stores,
    commands: Commands,
    principal: Principal,
    thread_id: str,
    takes: bool,
    verb: str,
) -> None:
    first = await commands.submit(in_thread(await commands.message("m1", "count"), "omt_1"), ANN)
    await claim_run(database, stores, await commands.run(first))
    message = in_thread(await commands.message("m2", "faster"), thread_id)
    ids = new_task_ids()
    if verb == "steer":
        (steered, _), _ = await database.write(
            partial(steer, stores, message, principal, ids=ids, now=T1)
        )
        assert steered.taken_as == ("steering" if takes else "task")
    else:
        _, stopped, _ = await database.write(
            partial(interrupt_session, stores, message, principal, ids=ids, now=T1)
        )
        assert (stopped is not None) is takes
        assert (await commands.run(first)).stop == (stopped.request if stopped else None)


def in_thread(submission: Submission, thread_id: str) -> Submission:
    assert submission.message is not None
    message = msgspec.structs.replace(submission.message, thread_id=thread_id)
    return msgspec.structs.replace(submission, message=message)


async def test_an_interruption_leaves_unread_steering_of_others_to_tasks_of_their_own(
    database: Database, stores: Stores, commands: Commands
) -> None:
    first = await commands.submit(await commands.message("m1", "count"), ANN)
    await claim_run(database, stores, await commands.run(first))
    for message_id, text, person in (("m2", "in French", BOSS), ("m3", "faster", ANN)):
        message = await commands.message(message_id, text, person)
        await database.write(partial(steer, stores, message, person, ids=new_task_ids(), now=T1))
    stop = await commands.message("m4", "no, wash")
    submitted, _, _ = await database.write(
        partial(interrupt_session, stores, stop, ANN, ids=new_task_ids(), now=T1)
    )
    runs = await database.read(partial(stores.runs.list_unfinished, submitted.session_id))
    found = [await database.read(partial(stores.tasks.get, run.task_id)) for run in runs]
    assert [(task.instruction, task.origin.principal) for task in found if task] == [
        ("count", ANN.id),
        ("faster\n\nno, wash", ANN.id),
        ("in French", BOSS.id),
    ]
