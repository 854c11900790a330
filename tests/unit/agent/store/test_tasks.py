"""Tasks."""

from functools import partial

import pytest

from internal.agent.domain.errors import Conflict
from internal.agent.domain.ids import SessionId, TaskId
from internal.agent.domain.tasks import Attachment, Origin, Profile, RunSpec, Status, TaskFilter
from internal.agent.domain.usage import RunLimits
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import CLEANED, HOSTILE, T0, T1, T2, a_session, a_task

LOCAL, ANA = Origin("web", "local"), Origin("lark", "lark:app:ou_ana", "app", "oc_1", "om_1")


async def test_a_stored_task_is_returned_unchanged(database: Database, stores: Stores) -> None:
    task = a_task(
        kind="background", lane="task-1", origin=ANA, instruction="半角 😀\n\ttabs \x1b[0m",
        spec=RunSpec(
            Profile("coder", tools=("shell",)), limits=RunLimits(max_cost=1.5), gates="off"
        ),
        attachments=(Attachment("a.png", "image/png", "attachment:ab", "ab", 7),),
        parent_task_id=TaskId("task-0"), stop_reason="error", status="failed", team_id="team",
    )  # fmt: skip
    await database.write(lambda: stores.tasks.add(task, "key"))

    assert await database.read(lambda: stores.tasks.get(task.id)) == task
    assert await database.read(lambda: stores.tasks.get_by_key(ANA.principal, "key")) == task
    assert await database.read(lambda: stores.tasks.get_by_key("local", "key")) is None
    assert await database.read(lambda: stores.tasks.get(TaskId("task-unknown"))) is None


async def test_invalid_characters_of_an_instruction_are_replaced(
    database: Database, stores: Stores
) -> None:
    origin = Origin("web", "local", chat_id=HOSTILE)
    task = a_task(instruction=HOSTILE, origin=origin, spec=RunSpec(workspace=HOSTILE))
    await database.write(lambda: stores.tasks.add(task, None))

    stored = await database.read(lambda: stores.tasks.get(task.id))

    assert stored is not None
    assert stored.instruction == CLEANED
    in_json = HOSTILE.replace("\ud83d", "\ufffd")  # JSON escapes a NUL
    assert (stored.origin.chat_id, stored.spec.workspace) == (in_json, in_json)


async def test_an_idempotency_key_belongs_to_one_task_of_a_principal(
    database: Database, stores: Stores
) -> None:
    await database.write(lambda: stores.tasks.add(a_task("task-1"), "key"))

    with pytest.raises(Conflict):
        await database.write(lambda: stores.tasks.add(a_task("task-2"), "key"))
    with pytest.raises(Conflict):
        await database.write(lambda: stores.tasks.add(a_task("task-1"), None))

    await database.write(lambda: stores.tasks.add(a_task("task-3", origin=ANA), "key"))
    await database.write(lambda: stores.tasks.add(a_task("task-4"), None))
    await database.write(lambda: stores.tasks.add(a_task("task-5"), None))
    assert (
        len(
            await database.read(
                lambda: stores.tasks.list_page(None, TaskFilter(), before=None, limit=9)
            )
        )
        == 4
    )


async def test_pages_are_newest_first(database: Database, stores: Stores) -> None:
    one, two = SessionId("session-1"), SessionId("session-2")
    for task in (
        a_task("task-a", one, created=T0),
        a_task("task-b", two, created=T1, status="failed"),
        a_task("task-c", one, created=T1, status="failed"),
        a_task("task-d", one, created=T2),
        a_task("task-e", one, created=T2, origin=ANA),
    ):
        await database.write(partial(stores.tasks.add, task, None))

    async def page(
        principal: str | None = "local",
        session: SessionId | None = None,
        status: Status | None = None,
        before: str | None = None,
        limit: int = 9,
    ) -> str:
        wanted = TaskFilter(session_id=session, status=status)
        tasks = await database.read(
            lambda: stores.tasks.list_page(principal, wanted, before=before, limit=limit)
        )
        return "".join(task.id.removeprefix("task-") for task in tasks)

    assert await page() == "dcba"
    assert await page(None) == "edcba"
    assert await page(limit=2) == "dc"
    assert await page(limit=2, before="task-c") == "ba"
    assert await page(before="task-a") == ""
    assert await page(session=one) == "dca"
    assert await page(session=two) == "b"
    assert await page(None, session=one, before="task-d") == "ca"
    assert await page(None, before="task-e", limit=1) == "d"
    assert await page(status="failed") == "cb"
    assert await page(None, status="queued") == "eda"
    assert await page(session=one, status="failed") == "c"
    assert await page(ANA.principal) == "e"
    assert await page(before="task-e") == "", "another person's task is no cursor"
    assert await page(before="task-unknown") == ""


async def test_a_status_is_stored(database: Database, stores: Stores) -> None:
    task = a_task()
    await database.write(lambda: stores.tasks.add(task, None))

    await database.write(lambda: stores.tasks.set_status(task.id, "failed", "timeout", now=T1))

    stored = await database.read(lambda: stores.tasks.get(task.id))
    assert stored is not None
    assert (stored.status, stored.stop_reason) == ("failed", "timeout")


async def test_adding_a_task_updates_the_activity_of_its_session(
    database: Database, stores: Stores
) -> None:
    session = a_session(updated=T1)
    await database.write(lambda: stores.sessions.add(session))

    for created, updated in ((T2, T2), (T0, T2)):
        task = a_task(f"task-{created}", created=created)
        await database.write(partial(stores.sessions.add_task, task, "", one_shot=False))
        stored = await database.read(lambda: stores.sessions.get(session.id))
        assert stored is not None
        assert stored.updated == updated
