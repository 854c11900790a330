"""Retention on a real database: old data is removed, needed data stays."""

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.events.subscription import Cursor
from internal.agent.app.gateway import Gateway
from internal.agent.app.retention.pruner import Pruner, RetentionPolicy
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import LOCAL_OWNER, AuditEntry
from internal.agent.domain.tasks import RunSpec
from internal.agent.ports.maintenance.reports import Pruned
from internal.agent.store.checkpoints import CheckpointDelta
from internal.agent.store.database import Database, Row
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from internal.sandbox.workspaces import Workspaces
from internal.worktrees.worktrees import GitWorktrees
from tests.support.ended_runs import add_ended_run
from tests.support.store_records import (
    T0,
    T1,
    a_run,
    a_session,
    a_task,
    add_running_run,
    append_events,
)

Select = Callable[[str], list[Row]]
MakePruner = Callable[..., Pruner]
TABLES = ("sessions", "tasks", "runs", "messages", "events", "usage", "turn_log", "checkpoints")
NOW = "2999-01-01T00:00:00.000Z"


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "of-sessions", GitWorktrees())


@pytest.fixture
def make_pruner(
    database: Database, stores: Stores, gateway: Gateway, workspaces: Workspaces
) -> MakePruner:
    def make(**days: int) -> Pruner:
        return Pruner(
            database,
            stores,
            clock=SystemClock(),
            policy=RetentionPolicy(**days),
            remove_session=gateway.delete_idle_session,
            workspaces=workspaces,
        )

    return make


def removed(pruned: Iterable[Pruned]) -> dict[str, int]:
    return {each.kind: each.total for each in pruned}


async def test_old_events_are_removed_and_the_conversation_stays(
    database: Database,
    stores: Stores,
    gateway: Gateway,
    select: Select,
    make_pruner: MakePruner,
) -> None:
    run = await add_ended_run(database, stores, "a", events=1_200)
    pruner = make_pruner(events_days=30)

    assert removed(await pruner.count()) == {"events": 1_200}
    assert select("select count(*) from events") == [(1_200,)]
    assert removed(await pruner.prune()) == {"events": 1_200}
    assert removed(await pruner.prune()) == {"events": 0}

    (message,) = await gateway.queries.messages(run.session_id, LOCAL_OWNER)
    assert message.message.text == "hello"
    events = await gateway.queries.events(run.session_id, LOCAL_OWNER)
    assert (events.events, events.reset_reason) == ([], "")


async def test_recent_events_stay(
    database: Database, stores: Stores, select: Select, make_pruner: MakePruner
) -> None:
    await add_ended_run(database, stores, "a")
    assert removed(await make_pruner(events_days=36_000).prune()) == {"events": 0}
    assert select("select count(*) from events") == [(3,)]


@pytest.mark.parametrize("reason", ["running", "resumable", "pinned", "webhook"])
async def test_needed_events_stay(
    database: Database,
    stores: Stores,
    select: Select,
    make_pruner: MakePruner,
    reason: str,
) -> None:
    """Events of unfinished and resumable runs, of pinned sessions and for waiting webhooks stay."""
    if reason == "running":
        await database.write(partial(stores.sessions.add, a_session("session-x")))
        run = await add_running_run(database, stores, a_run("run-x", "session-x"))
        await database.write(partial(append_events, stores, run, 3))
    else:
        run = await add_ended_run(database, stores, "x", pinned=reason == "pinned")
    if reason == "resumable":
        delta = CheckpointDelta(b"{}", 0, ())
        await database.write(partial(stores.runs.save_checkpoint, run.id, delta))
    if reason == "webhook":
        ((second,),) = select("select max(position) - 1 from events")
        await database.write(partial(stores.events.save_reader, "hook", second))
    later = await add_ended_run(database, stores, "y")

    await make_pruner(events_days=30).prune()

    kept = select(
        "select run_id, count(*) from events join event_runs on number = run"
        " group by run_id order by run_id"
    )
    expected = [(run.id, 1), (later.id, 3)] if reason == "webhook" else [(run.id, 3)]
    assert kept == expected


async def test_a_cursor_before_removed_events_is_reset_also_when_older_ones_are_kept(
    database: Database, stores: Stores, gateway: Gateway, make_pruner: MakePruner
) -> None:
    kept = await add_ended_run(database, stores, "a", pinned=True)  # events 1 to 3
    await add_ended_run(database, stores, "b")  # 4 to 6
    await make_pruner(events_days=30).prune()
    bounds = await gateway.queries.bounds()
    assert (bounds.earliest, bounds.head) == (7, 6)

    async def read(position: int | None) -> tuple[list[int], str]:
        cursor = None if position is None else Cursor(bounds.epoch, position)
        page = await gateway.queries.events(kept.session_id, LOCAL_OWNER, after=cursor)
        return [each.position for each in page.events], page.reset_reason

    assert await read(None) == ([1, 2, 3], "")
    assert await read(0) == ([1, 2, 3], "")
    for position in range(1, 6):
        assert await read(position) == ([], "too_old")
    assert await read(6) == ([], "")


async def test_idle_sessions_go_with_all_that_belongs_to_them(
    database: Database, stores: Stores, select: Select, make_pruner: MakePruner
) -> None:
    run = await add_ended_run(database, stores, "a", events=1_200)
    delta = CheckpointDelta(b"{}", 0, 600 * (b"{}",))
    await database.write(partial(stores.runs.save_checkpoint, run.id, delta))
    await add_ended_run(database, stores, "b", pinned=True)
    pruner = make_pruner(sessions_days=30)

    assert removed(await pruner.count()) == {"sessions": 1}
    assert removed(await pruner.prune()) == {"sessions": 1}

    assert select("select id from sessions") == [("session-b",)]
    counts = {table: select(f"select count(*) from {table}")[0][0] for table in TABLES}  # noqa: S608 - a table
    empty = {"turn_log": 0, "checkpoints": 0}
    assert counts == {**dict.fromkeys(TABLES, 1), "events": 3, **empty}
    assert select("select kind, name from file_removals") == [("workspace", "session-a")]
    assert select("select principal, action, target from audit_entries") == [
        ("retention", "session.deleted", "session-a")
    ]


async def test_a_session_with_an_unfinished_run_stays(
    database: Database, stores: Stores, select: Select, make_pruner: MakePruner
) -> None:
    await database.write(partial(stores.sessions.add, a_session("session-a")))
    await add_running_run(database, stores, a_run("run-a", "session-a"))
    assert removed(await make_pruner(sessions_days=30).prune()) == {"sessions": 0}
    assert select("select count(*) from sessions") == [(1,)]


async def test_sessions_of_single_tasks_have_a_limit_of_their_own(
    database: Database, stores: Stores, select: Select, make_pruner: MakePruner
) -> None:
    for name, one_shot in (("a", True), ("b", False)):
        session = a_session(f"session-{name}", one_shot=one_shot)
        await database.write(partial(stores.sessions.add, session))
    pruned = await make_pruner(one_shot_days=30).prune()
    assert removed(pruned) == {"one_shot_sessions": 1}
    assert select("select id from sessions") == [("session-b",)]


async def test_a_session_that_became_active_meanwhile_stays(
    database: Database, stores: Stores, gateway: Gateway, select: Select
) -> None:
    await database.write(partial(stores.sessions.add, a_session("session-a")))
    for since, deleted in ((T0, False), (T1, True)):  # it was active at T0
        assert await gateway.delete_idle_session(SessionId("session-a"), since) is deleted
    assert select("select id from sessions") == []


async def test_only_handled_and_sent_messages_are_removed(
    database: Database, stores: Stores, select: Select, make_pruner: MakePruner
) -> None:
    for name in ("accepted", "handled"):
        message = InboundMessage("lark", "app", name, "chat", "ann", "{}", T0)
        await database.write(partial(stores.inbox.accept, message))
    await database.write(partial(stores.inbox.dismiss, "lark", "app", "handled"))
    for number, name in enumerate(("sent", "given_up", "pending"), 1):
        outgoing = OutgoingMessage(name, "lark", "app", "chat", "", "text")
        await database.write(partial(stores.outbox.add, outgoing, T0))
        if name == "sent":
            await database.write(partial(stores.outbox.mark_sent, number, "om-1", T0))
        elif name == "given_up":
            give_up = partial(stores.outbox.give_up, number, "no", T0, unconfirmed=False)
            await database.write(give_up)

    pruned = await make_pruner(handled_messages_days=30).prune()

    assert removed(pruned) == {"inbox": 1, "outbox": 1}
    assert select("select message_id from inbox") == [("accepted",)]
    assert select("select key from outbox order by key") == [("given_up",), ("pending",)]


async def test_audit_entries_and_usage_are_removed(
    database: Database, stores: Stores, select: Select, make_pruner: MakePruner
) -> None:
    await add_ended_run(database, stores, "a")
    for at in (T0, NOW):
        entry = AuditEntry(at, LOCAL_OWNER.id, "web", "task.stopped", "task-a", "")
        await database.write(partial(stores.audit.add, entry))
    pruned = await make_pruner(audit_days=30, usage_days=30).prune()
    assert removed(pruned) == {"audit_entries": 1, "usage": 1}
    assert select("select at from audit_entries") == [(NOW,)]


async def test_a_row_that_must_stay_does_not_hide_old_ones_after_it(
    database: Database, stores: Stores, select: Select, make_pruner: MakePruner
) -> None:
    """More rows that stay than a transaction removes."""
    await add_ended_run(database, stores, "a", events=600, pinned=True)
    await add_ended_run(database, stores, "b", events=600)
    assert removed(await make_pruner(events_days=30).prune()) == {"events": 600}
    assert select("select distinct run_id from events join event_runs on number = run") == [
        ("run-a",)
    ]


async def test_old_folders_without_files_are_removed(
    database: Database, stores: Stores, make_pruner: MakePruner, workspaces: Workspaces
) -> None:
    """Only folders of idle sessions are removed, and never a file."""
    for name in ("a", "b", "new", "named"):
        await add_ended_run(database, stores, name)
    await database.write(partial(stores.sessions.add, a_session("session-running")))
    await database.write(partial(stores.tasks.add, a_task("task-r", "session-running"), None))
    await add_running_run(database, stores, a_run("run-r", "session-running"))
    sessions = ("session-a", "session-b", "session-new", "session-running", "session-unknown")
    folders = [Path(workspaces.create(a_task(session_id=each))) for each in sessions]
    named = a_task(session_id="session-named", spec=RunSpec(workspace=str(folders[0].parents[2])))
    workspaces.create(named)
    folders.append(workspaces.files.root / "session-named")
    (folders[1] / "input" / "a.txt").touch()
    outside = folders[0].parents[2] / "outside"
    outside.mkdir()
    (workspaces.folders.root / "session-link").symlink_to(outside)
    for folder in folders:
        if folder.name != "session-new":
            os.utime(folder, (0, 0))

    pruner = make_pruner()
    assert removed(await pruner.count()) == {"empty_workspaces": 2}
    assert all(folder.is_dir() for folder in folders)
    assert removed(await pruner.prune()) == {"empty_workspaces": 2}
    assert removed(await pruner.prune()) == {}

    gone = [folder.name for folder in folders if not folder.exists()]
    assert gone == ["session-a", "session-named"]
    assert (folders[1] / "input" / "a.txt").exists()
    assert outside.is_dir()
    workspaces.create(a_task(session_id="session-a"))
    assert (folders[0] / "output").is_dir()
