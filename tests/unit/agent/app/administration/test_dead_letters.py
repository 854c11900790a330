"""Messages and runs that were given up are listed, retried and dismissed by the owner."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from internal.agent.app.gateway import Gateway
from internal.agent.domain.chats import DeadLetter, InboundMessage, OutgoingMessage
from internal.agent.domain.errors import Conflict, Forbidden, NotFound
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.tasks import MAX_CRASHES, Origin, Run
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Database, Row
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from tests.support.store_records import (
    T0,
    T1,
    T2,
    T3,
    a_run,
    a_session,
    a_task,
    add_run,
    claim_run,
)

MESSAGE = InboundMessage("lark", "cli_a", "om_1", "oc_1", "lark:a:mei", "{}", T0)
ORIGIN = Origin("lark", "lark:a:mei", "cli_a", "oc_2", "om_2")
OPERATOR = Principal("lark:a:ou", roles=frozenset({"talk", "operate"}))
IN, OUT, RUN = "incoming-1", "outgoing-1", "run-1"


@pytest.fixture
async def crashed(database: Database, stores: Stores) -> Run:
    """Return a run that failed because its process died each time."""
    run = a_run(RUN)
    await database.write(partial(stores.sessions.add, a_session()))
    await database.write(partial(stores.tasks.add, a_task(origin=ORIGIN), None))
    await add_run(database, stores, run)
    for _ in range(MAX_CRASHES):
        claimed = await claim_run(database, stores, run)
        requeue = partial(stores.runs.requeue_failed, run.id, claimed.fence)
        await database.write(partial(requeue, not_before=T0, crashed=True))
    claimed = await claim_run(database, stores, run)
    end = RunEnd("failed", "interrupted", Usage(), None, "", "The process died.", T3)
    await database.write(partial(stores.runs.end, run.id, claimed.fence, end))
    await database.write(partial(stores.tasks.set_status, run.task_id, "failed", None, now=T3))
    return run


@pytest.fixture
async def letters(gateway: Gateway, database: Database, stores: Stores, crashed: Run) -> Gateway:
    """Return a gateway with a dead letter of each kind; the outgoing one may have been sent."""
    outgoing = OutgoingMessage("key-1", "lark", "cli_a", "oc_1", "om_0", "the answer", crashed.id)
    await asyncio.wrap_future(gateway.delivery.accept(MESSAGE))
    for work in (
        partial(stores.inbox.begin_processing, MESSAGE, 3, T1),
        partial(stores.inbox.set_aside, MESSAGE, failure="broke", text="hello", now=T1),
        partial(stores.outbox.add, outgoing, T0),
        partial(stores.outbox.begin_attempt, 1, T1),
        partial(stores.outbox.give_up, 1, "no answer", T2, unconfirmed=True),
    ):
        await database.write(work)
    return gateway


async def ids(gateway: Gateway) -> list[str]:
    return [letter.id for letter in await gateway.dead_letters.list_all(LOCAL_OWNER)]


async def test_dead_letters_of_each_kind_are_listed_newest_first(letters: Gateway) -> None:
    assert await letters.dead_letters.list_all(LOCAL_OWNER) == [
        DeadLetter(
            id=RUN,
            kind="run",
            channel="lark",
            chat_id="oc_2",
            principal="lark:a:mei",
            about="count",
            run_id=RUN,
            reason="The process died.",
            attempts=MAX_CRASHES,
            given_up_at=T3,
        ),
        DeadLetter(
            id=OUT,
            kind="outgoing",
            channel="lark",
            chat_id="oc_1",
            about="count",
            text="the answer",
            run_id=RUN,
            reason="no answer",
            attempts=1,
            may_have_been_sent=True,
            given_up_at=T2,
        ),
        DeadLetter(
            id=IN,
            kind="incoming",
            channel="lark",
            chat_id="oc_1",
            principal="lark:a:mei",
            about="hello",
            reason="broke",
            attempts=3,
            given_up_at=T1,
        ),
    ]
    assert await letters.dead_letters.count() == 3
    [newest] = await letters.dead_letters.list_all(LOCAL_OWNER, limit=1)
    assert newest.id == RUN


async def test_a_message_that_was_set_aside_is_processed_again(letters: Gateway) -> None:
    woken: list[str] = []
    letters.delivery.add_loop(lambda: woken.append("worker"))
    await letters.dead_letters.retry(IN, LOCAL_OWNER, "web")
    [accepted] = await letters.delivery.list_accepted("lark", "cli_a", 9)
    assert (accepted.message, accepted.attempts) == (MESSAGE, 0)
    assert woken == ["worker"]
    assert await ids(letters) == [RUN, OUT]


async def test_a_message_that_may_have_been_sent_is_sent_again_after_consent(
    letters: Gateway,
) -> None:
    with pytest.raises(Conflict, match="it may appear twice"):
        await letters.dead_letters.retry(OUT, LOCAL_OWNER, "web")
    assert await ids(letters) == [RUN, OUT, IN]
    await letters.dead_letters.retry(OUT, LOCAL_OWNER, "web", may_repeat=True)
    assert [due.number for due in await letters.delivery.list_due("lark", "cli_a", 9)] == [1]
    assert await ids(letters) == [RUN, IN]


async def test_the_task_of_a_crashed_run_continues_for_the_person_who_gave_it(
    letters: Gateway, database: Database, stores: Stores
) -> None:
    await letters.dead_letters.retry(RUN, LOCAL_OWNER, "web")
    assert await ids(letters) == [OUT, IN]
    [(run, task)] = await letters.chats.list_unfinished_in("lark:cli_a:oc_2")
    assert (task.origin, run.crashes) == (ORIGIN, 0)
    assert task.instruction.endswith("count")
    events = await database.read(partial(stores.events.list_by_run, run.id, None))
    assert [each.event for each in events] == [
        "workflow.input.received",
        "workflow.lifecycle.updated",
    ]
    with pytest.raises(NotFound):
        await letters.dead_letters.retry(RUN, LOCAL_OWNER, "web")


async def test_a_resumed_run_is_no_dead_letter(letters: Gateway, crashed: Run) -> None:
    await letters.resume(crashed.task_id, LOCAL_OWNER, "web")
    assert await ids(letters) == [OUT, IN]


async def test_a_dismissed_dead_letter_is_gone(
    letters: Gateway, select: Callable[[str], list[Row]]
) -> None:
    for name in (IN, OUT, RUN):
        await letters.dead_letters.dismiss(name, LOCAL_OWNER, "cli")
        with pytest.raises(NotFound):
            await letters.dead_letters.dismiss(name, LOCAL_OWNER, "cli")
        with pytest.raises(NotFound):
            await letters.dead_letters.retry(name, LOCAL_OWNER, "cli", may_repeat=True)
    assert await letters.dead_letters.count() == 0
    assert select("select status from inbox") == [("handled",)]
    assert select("select status from outbox") == [("dropped",)]


async def test_every_change_is_in_the_audit_log(letters: Gateway) -> None:
    await letters.dead_letters.retry(IN, LOCAL_OWNER, "web")
    await letters.dead_letters.dismiss(OUT, LOCAL_OWNER, "cli")
    entries = await letters.queries.audit_entries(LOCAL_OWNER)
    assert [(each.action, each.via, each.target) for each in entries] == [
        ("dead_letter.dismissed", "cli", OUT),
        ("dead_letter.retried", "web", IN),
    ]


async def test_only_the_owner_reads_and_changes_dead_letters(letters: Gateway) -> None:
    found = letters.dead_letters
    for work in (
        found.list_all(OPERATOR),
        found.retry(IN, OPERATOR, "web"),
        found.dismiss(IN, OPERATOR, "web"),
    ):
        with pytest.raises(Forbidden):
            await work
    assert await ids(letters) == [RUN, OUT, IN]


@pytest.mark.parametrize(
    "name", ["incoming-2", "incoming-", "incoming-x", "outgoing-9", "outgoing-" + 30 * "9", "run-2"]
)
async def test_an_unknown_dead_letter_is_not_found(letters: Gateway, name: str) -> None:
    with pytest.raises(NotFound, match="There is no dead letter"):
        await letters.dead_letters.retry(name, LOCAL_OWNER, "web")
    with pytest.raises(NotFound, match="There is no dead letter"):
        await letters.dead_letters.dismiss(name, LOCAL_OWNER, "web")
