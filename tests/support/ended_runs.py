"""Runs that have ended, with stored content."""

from functools import partial

from internal.agent.domain.messages import user_message
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Run, SessionMarks
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Database, Write
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from tests.support.store_records import (
    T0,
    T1,
    a_run,
    a_session,
    a_task,
    add_running_run,
    append_events,
)

END = RunEnd("completed", "final_answer", Usage(), None, "", "", T1)


def add_content(stores: Stores, run: Run) -> Write[None]:
    message = user_message("hello")
    yield from stores.sessions.add_messages(run.session_id, run.id, [message], now=T0)
    usage = Usage(input_tokens=1, output_tokens=2)
    yield from stores.usage.save(run, LOCAL_OWNER.id, "model", usage=usage, cost=0.5, now=T0)
    yield from stores.usage.add_to_sums(run.id)


async def add_ended_run(
    database: Database, stores: Stores, name: str, events: int = 3, *, pinned: bool = False
) -> Run:
    """Store a session of January 2026 with an ended run, its events, message and usage."""
    session = a_session(f"session-{name}")
    await database.write(partial(stores.sessions.add, session))
    marks = SessionMarks(pinned=pinned)
    await database.write(partial(stores.sessions.mark, session.id, marks, T0))
    await database.write(partial(stores.tasks.add, a_task(f"task-{name}", session.id), None))
    run = await add_running_run(database, stores, a_run(f"run-{name}", session.id))
    await database.write(partial(append_events, stores, run, events))
    await database.write(partial(add_content, stores, run))
    await database.write(partial(stores.runs.end, run.id, run.fence, END))
    return run
