"""Lists of tasks match their filters, in pages, whatever statement reads them."""

import random
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import get_args

from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import (
    ENDED,
    Origin,
    Status,
    StopReason,
    Task,
    TaskFilter,
    TaskGroup,
)
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, T2, a_task

PEOPLE = ("ana", "ben")
SESSIONS = (SessionId("session-1"), SessionId("session-2"))
MANY, PAGE = 60, 4


def some_tasks() -> list[Task]:
    """Return tasks of every status; some have the same time."""
    chosen = random.Random(5)  # noqa: S311 - a seeded choice
    reasons: tuple[StopReason | None, ...] = ("await_tasks", "await_user_input", None)
    return [
        a_task(
            f"task-{number:02}",
            chosen.choice(SESSIONS),
            origin=Origin("web", chosen.choice(PEOPLE)),
            status=chosen.choice(get_args(Status)),
            stop_reason=chosen.choice(reasons),
            created=chosen.choice((T0, T1, T2)),
            parent_task_id=chosen.choice((None, None, "task-00")),
        )
        for number in range(MANY)
    ]


def group_of(task: Task) -> TaskGroup:
    if task.status in ENDED:
        return "done"
    is_asking = task.status == "waiting" and task.stop_reason == "await_user_input"
    return "needs_me" if is_asking else "running"


def filters() -> Iterator[tuple[str | None, TaskFilter]]:
    choices = product(
        (None, *PEOPLE),
        (None, SESSIONS[0]),
        (None, *get_args(Status)),
        (None, *get_args(TaskGroup)),
        (False, True),
    )
    for person, session, status, group, subtasks in choices:
        yield person, TaskFilter(session, status, group, subtasks=subtasks)


def matches(task: Task, person: str | None, wanted: TaskFilter) -> bool:
    return (
        person in {None, task.origin.principal}
        and wanted.session_id in {None, task.session_id}
        and wanted.status in {None, task.status}
        and wanted.group in {None, group_of(task)}
        and (wanted.subtasks or task.parent_task_id is None)
    )


async def test_lists_contain_what_their_filters_say(database: Database, stores: Stores) -> None:
    tasks = some_tasks()
    for task in tasks:
        await database.write(partial(stores.tasks.add, task, None))
    newest_first = sorted(tasks, key=lambda task: (task.created, task.id), reverse=True)

    for person, wanted in filters():
        found: list[Task] = []
        before = None
        while True:
            page = partial(stores.tasks.list_page, person, wanted, before=before, limit=PAGE)
            part = await database.read(page)
            found += part
            if len(part) < PAGE:
                break
            before = part[-1].id
        expected = [task.id for task in newest_first if matches(task, person, wanted)]
        assert [task.id for task in found] == expected, (person, wanted)
