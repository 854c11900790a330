"""Events that a version before migration 23 stored with their whole envelope."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.events.envelope import EventRecord, RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.types import Event, NodeCompleted, NodeStarted, ResultFinal
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Run
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Database
from internal.agent.store.events import LogBounds
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from internal.storage.sqlite.schema import prepare_file
from tests.support.database_files import create_database, execute, open_sqlite, query
from tests.support.postgres_server import shared_server
from tests.support.store_records import (
    RUNNING,
    T0,
    T1,
    T2,
    a_run,
    a_session,
    add_running_run,
    append,
)

A, B = SessionId("session-a"), SessionId("session-b")
STARTED = NodeStarted(node_id='it\'s "1"', kind="iteration")
COMPLETED = NodeCompleted(node_id="iter:1", duration_ms=1)

_NEWER = (
    *(f"alter table sessions drop column {name}" for name in ("permission_mode", "plan_review")),
    *(f"drop index {name}" for name in ("runs_of_person", "runs_started_of_person")),
    *(f"alter table runs drop column {name}" for name in ("person", "max_running")),
    "drop table conversations",  # of migration 37
    "drop table history_marks",  # of migration 33
    "drop index inbox_of_chat",
    "drop index inbox_reactions",  # of migration 31
    *(f"alter table inbox drop column {name}" for name in ("reaction", "reaction_run")),
    "alter table questions drop column urged",
    "drop table chat_contacts",  # of migration 30
    "drop index tasks_with_feedback",
    "alter table inbox drop column sent",  # of migration 28
    "alter table outbox drop column sent",
    "drop table call_repairs",  # of migration 27
    "drop table model_lessons",  # of migration 26
    "drop index inbox_accepted_of_chat",  # of migration 24
    "drop table events",
    "drop table event_runs",
    "alter table earlier_events rename to events",
    "delete from schema_migrations where number >= 23",
    "pragma user_version = 22",
)
"""Statements that undo migration 23 and later ones."""


def earlier(run: Run, position: int, seq: int, event: Event) -> EventRecord:
    json = encode_envelope(wrap_event(RunIds.of(run), event, T0, seq))
    return EventRecord(run.session_id, run.id, event.name, json, position, seq)


def insertions(records: Sequence[EventRecord], table: str = "earlier_events") -> list[str]:
    """Return the statements that store events as earlier versions did."""
    statements = [f"update event_log set head = {records[-1].position}"]  # noqa: S608 - a number
    for record in records:
        values = (
            str(record.position),
            *(
                "'" + text.replace("'", "''") + "'"
                for text in (record.session_id, "task", record.run_id)
            ),
            str(record.seq),
            *(
                "'" + text.replace("'", "''") + "'"
                for text in (f"evt-{record.position}", record.event, T0, record.json.decode())
            ),
        )
        statements.append(
            f"insert into {table} (position, session_id, task_id, run_id, seq, event_id, event, ts,"  # noqa: S608 - of this test
            f" envelope) values ({', '.join(values)})"
        )
    return statements


@pytest.fixture
def store_earlier(address: str) -> Callable[[Sequence[EventRecord]], None]:
    def store(records: Sequence[EventRecord]) -> None:
        for statement in insertions(records):
            if address.startswith("postgresql:"):
                shared_server().sql(statement, address.rpartition("/")[2])
            else:
                execute(Path(address), statement)

    return store


async def two_runs(
    database: Database, stores: Stores, store_earlier: Callable[[Sequence[EventRecord]], None]
) -> tuple[Run, Run, list[EventRecord]]:
    """Store two events of each of two runs as before, and two of each as now."""
    for session in (A, B):
        await database.write(partial(stores.sessions.add, a_session(session)))
    one = await add_running_run(database, stores, a_run("run-1", A))
    two = await add_running_run(database, stores, a_run("run-2", B))
    events = [
        earlier(one, 11, 1, STARTED), earlier(two, 12, 1, STARTED),
        earlier(two, 14, 2, COMPLETED), earlier(one, 15, 2, COMPLETED),
    ]  # fmt: skip
    store_earlier(events)
    for run, seq in ((two, 3), (one, 3), (two, 4), (one, 4)):
        event = RUNNING if seq == 3 else STARTED
        events += await database.write(partial(append, stores, run, seq, event))
    return one, two, events


async def test_events_in_both_forms_are_one_log(
    database: Database,
    stores: Stores,
    store_earlier: Callable[[Sequence[EventRecord]], None],
) -> None:
    one, _two, events = await two_runs(database, stores, store_earlier)
    log = stores.events

    async def after(
        position: int, sessions: Sequence[SessionId] | None, limit: int = 99
    ) -> list[EventRecord]:
        return await database.read(partial(log.list_after, position, sessions, limit))

    assert [event.position for event in events] == [11, 12, 14, 15, 16, 17, 18, 19]
    assert await after(0, None) == events
    assert await after(12, None, 3) == events[2:5]
    assert await after(0, [A]) == [event for event in events if event.session_id == A]
    assert await after(12, [B], 2) == [events[2], events[4]]
    assert await after(0, [A, B]) == events
    of_one = [event for event in events if event.run_id == one.id]
    assert await database.read(lambda: log.list_by_run(one.id)) == of_one
    started = [of_one[0], of_one[3]]
    assert await database.read(lambda: log.list_by_run(one.id, STARTED.name)) == started
    kinds = (COMPLETED.name, STARTED.name)
    of_kinds = [event for kind in kinds for event in of_one if event.event == kind]
    assert await database.read(lambda: log.list_of_kinds(one.id, kinds)) == of_kinds
    epoch, *bounds = await database.read(log.get_bounds)
    assert (len(epoch), bounds) == (6, [19, 11])


async def test_events_in_both_forms_are_removed_by_age(
    database: Database,
    stores: Stores,
    store_earlier: Callable[[Sequence[EventRecord]], None],
) -> None:
    one, two, events = await two_runs(database, stores, store_earlier)
    remove = partial(stores.retention.remove_page, "events", 0, T1)
    assert (await database.write(remove)).expired == [], "their runs are not over"

    end = RunEnd("completed", "final_answer", Usage(), None, "", "", T1)
    await database.write(lambda: stores.runs.end(one.id, one.fence, end))
    pages = [await database.write(remove) for _ in range(3)]

    assert [page.expired for page in pages[:2]] == [[11, 15], []]
    work = partial(stores.retention.remove_page, "events", 14, T1)
    assert (await database.write(work)).expired == [17, 19]
    left = await database.read(partial(stores.events.list_after, 0, None, 99))
    assert left == [event for event in events if event.run_id == two.id]
    assert (await database.read(stores.events.get_bounds)).earliest == 20


async def test_a_deleted_session_has_no_events_in_either_form(
    database: Database,
    stores: Stores,
    store_earlier: Callable[[Sequence[EventRecord]], None],
    select: Callable[[str], list[tuple[object, ...]]],
) -> None:
    one, _, events = await two_runs(database, stores, store_earlier)
    end = RunEnd("completed", "final_answer", Usage(), None, "", "", T1)
    await database.write(lambda: stores.runs.end(one.id, one.fence, end))

    assert await database.write(partial(stores.sessions.delete, A))

    left = await database.read(partial(stores.events.list_after, 0, None, 99))
    assert left == [event for event in events if event.session_id == B]
    assert select("select run_id from event_runs") == [("run-2",)]


async def test_the_content_of_an_idle_session_is_removed_in_both_forms(
    database: Database,
    stores: Stores,
    store_earlier: Callable[[Sequence[EventRecord]], None],
) -> None:
    one, _, events = await two_runs(database, stores, store_earlier)
    end = RunEnd("completed", "final_answer", Usage(), None, "", "", T1)
    await database.write(lambda: stores.runs.end(one.id, one.fence, end))

    remove = partial(stores.retention.remove_content, A, T2)
    assert [await database.write(remove) for _ in range(3)] == [True, True, False]

    left = await database.read(partial(stores.events.list_after, 0, None, 99))
    assert left == [event for event in events if event.session_id == B]


async def test_the_migration_keeps_events_and_positions(tmp_path: Path) -> None:
    path, run = tmp_path / "larkspur.db", a_run("run-1", A)
    final = ResultFinal(
        final_answer="42", stop_reason="final_answer", total_iterations=1, usage=Usage(),
        duration_ms=5,
    )  # fmt: skip
    events = [earlier(run, 7, 1, STARTED), earlier(run, 8, 2, final)]
    await create_database(path)
    execute(path, *_NEWER, *insertions(events, "events"))

    prepare_file(path)

    assert query(path, "select count(*) from events") == [(0,)]
    stores = Stores()
    async with open_sqlite(path) as database:
        assert await database.read(partial(stores.events.list_after, 0, None, 99)) == events
        epoch = (await database.read(stores.events.get_bounds)).epoch
        assert await database.read(stores.events.get_bounds) == LogBounds(epoch, 8, 7)
