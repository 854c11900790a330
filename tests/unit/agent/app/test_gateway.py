"""The gateway: rights, audit entries and messages to the dispatcher."""

import pytest

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.creation import Submission
from internal.agent.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound, RunStopped
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.tasks import RunSpec
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import claim_run
from tests.support.web_app import IdleDispatcher

TASK = Submission("count", RunSpec(), "web")
ANN = Principal("lark:app:ou_1", "Ann", frozenset({"talk"}))
NOBODY = Principal("lark:app:ou_9")


async def test_only_people_who_may_talk_submit_tasks(gateway: Gateway) -> None:
    for call in (gateway.submit, gateway.steer, gateway.interrupt):
        with pytest.raises(Forbidden, match="may not submit"):
            await call(TASK, NOBODY)
    with pytest.raises(Forbidden, match="may not open"):
        await gateway.open_session(NOBODY, "web")
    with pytest.raises(InvalidRequest, match="empty"):
        await gateway.submit(Submission(" ", RunSpec(), "web"), ANN)


async def test_a_task_of_another_person_is_not_found(gateway: Gateway) -> None:
    made = await gateway.submit(TASK, LOCAL_OWNER)
    with pytest.raises(NotFound):
        await gateway.stop(made.task_id, ANN, "lark")
    with pytest.raises(NotFound):
        await gateway.steer_task(made.task_id, "faster", ANN, channel="lark")
    with pytest.raises(NotFound):
        await gateway.resume(made.task_id, ANN, "lark")


async def test_a_running_task_is_stopped_through_the_dispatcher(
    gateway: Gateway, dispatcher: IdleDispatcher, database: Database, stores: Stores
) -> None:
    made = await gateway.submit(TASK, ANN)
    run = await gateway.queries.latest_run(made.task_id, ANN)
    await claim_run(database, stores, run)
    assert await gateway.stop(made.task_id, ANN, "lark") == "running"
    ((run_id, reason),) = dispatcher.cancelled
    assert run_id == run.id
    assert isinstance(reason, RunStopped)
    assert (reason.by, reason.via, reason.name) == (ANN.id, "lark", "Ann")


async def test_a_stopped_task_is_resumed_in_its_session(gateway: Gateway) -> None:
    made = await gateway.submit(TASK, ANN)
    with pytest.raises(Conflict, match="has not ended"):
        await gateway.resume(made.task_id, ANN, "web")
    assert await gateway.stop(made.task_id, ANN, "web") == "cancelled"
    resumed = await gateway.resume(made.task_id, ANN, "web")
    assert resumed.session_id == made.session_id
    assert resumed.task_id != made.task_id


async def test_sessions_are_opened_renamed_and_deleted(gateway: Gateway) -> None:
    session = await gateway.open_session(ANN, "web", title="Counting")
    assert (session.title, session.owner) == ("Counting", ANN.id)
    renamed = await gateway.change_session(session.id, ANN, title="Numbers")
    assert renamed.title == "Numbers"
    with pytest.raises(NotFound):
        await gateway.change_session(session.id, Principal("web:other"), title="Mine")
    made = await gateway.submit(Submission("count", RunSpec(), "web", session.id), ANN)
    with pytest.raises(Conflict, match="Stop it first"):
        await gateway.delete_session(session.id, ANN)
    await gateway.stop(made.task_id, ANN, "web")
    await gateway.delete_session(session.id, ANN)
    with pytest.raises(NotFound):
        await gateway.queries.session(session.id, ANN)
    entries = await gateway.queries.audit_entries(LOCAL_OWNER)
    assert [entry.action for entry in entries] == ["session.deleted", "task.stopped"]


async def test_the_end_of_a_run_tells_that_there_are_messages_to_send(gateway: Gateway) -> None:
    woken: list[str] = []
    with gateway.listen_for_messages(lambda: woken.append("woken")):
        made = await gateway.submit(TASK, ANN)
        assert woken == []
        await gateway.stop(made.task_id, ANN, "lark")
        assert woken == ["woken"]
    other = await gateway.submit(TASK, ANN)
    await gateway.stop(other.task_id, ANN, "lark")
    assert woken == ["woken"]
