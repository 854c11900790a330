"""Records for store tests. Every field can be overridden by keyword."""

from functools import partial
from typing import Any

from internal.agent.domain.artifacts import Artifact
from internal.agent.domain.events.envelope import EventRecord, RunIds
from internal.agent.domain.events.types import Event, LifecycleUpdated
from internal.agent.domain.ids import ArtifactId, RunId, SessionId, TaskId
from internal.agent.domain.tasks import Origin, Run, RunSpec, Session, Task
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

RUNNING = LifecycleUpdated(status="running", phase="execute")

T0 = "2026-01-31T08:00:00.000Z"
T1 = "2026-01-31T08:00:01.000Z"
T2 = "2026-01-31T08:00:02.000Z"
T3 = "2026-01-31T08:00:03.000Z"

# NUL and other control characters, a lone surrogate, quotes, and the text after storing it.
HOSTILE = "nul \0 bell \a half \ud83d 半角 '; drop table runs; -- \u2028"
CLEANED = "nul \ufffd bell \a half \ufffd 半角 '; drop table runs; -- \u2028"


def a_session(session_id: str = "session-1", **fields: Any) -> Session:
    values: dict[str, Any] = {
        "title": "", "channel": "web", "owner": "local", "created": T0, "updated": T0, **fields,
    }  # fmt: skip
    return Session(SessionId(session_id), **values)


def a_task(task_id: str = "task-1", session_id: str = "session-1", **fields: Any) -> Task:
    values: dict[str, Any] = {
        "kind": "chat", "lane": session_id, "instruction": "count", "spec": RunSpec(),
        "origin": Origin("web", "local"), "status": "queued", "created": T0, **fields,
    }  # fmt: skip
    return Task(TaskId(task_id), SessionId(session_id), **values)


def a_run(run_id: str = "run-1", session_id: str = "session-1", **fields: Any) -> Run:
    values: dict[str, Any] = {
        "task_id": TaskId(run_id.replace("run", "task")), "session_id": SessionId(session_id),
        "lane": session_id, "status": "queued", "fence": 0, "last_seq": 0, **fields,
    }  # fmt: skip
    return Run(RunId(run_id), **values)


def an_artifact(number: int = 1, **fields: Any) -> Artifact:
    values: dict[str, Any] = {
        "session_id": SessionId("session-1"), "task_id": TaskId("task-1"),
        "run_id": RunId("run-1"), "call_id": "call-1", "maker": "shell", "name": "chart.png",
        "version": 1, "type": "image", "media_type": "image/png", "sha256": f"hash-{number}",
        "size": 2048, "uri": f"attachment:hash-{number}", "created": T0, **fields,
    }  # fmt: skip
    return Artifact(ArtifactId(f"artifact-{number}"), **values)


def append(stores: Stores, run: Run, first_seq: int, *events: Event) -> Write[list[EventRecord]]:
    """Store events of a run under given numbers."""
    ids = RunIds(run.session_id, run.task_id, run.id)
    return (yield from stores.events.append(ids, first_seq, [(event, T0) for event in events]))


def append_events(stores: Stores, run: Run, count: int = 1) -> Write[list[int]]:
    """Number and append events of a running run; return their positions."""
    seq, _ = yield from stores.events.reserve_seqs(run.id, run.fence, count)
    records = yield from append(stores, run, seq, *(count * [RUNNING]))
    return [record.position for record in records]


async def add_run(database: Database, stores: Stores, run: Run, lease_until: str = "") -> Run:
    """Insert a queued run."""
    await database.write(lambda: stores.runs.add(run, T0, lease_until))
    return run


async def claim_run(
    database: Database, stores: Stores, run: Run, owner: str = "worker", *, lease_until: str = T1
) -> Run:
    """Claim a queued run."""
    claim = partial(stores.runs.claim, run.id, owner, lease_until=lease_until, now=T0)
    taken = await database.write(claim)
    assert taken is not None
    return taken


async def add_running_run(
    database: Database, stores: Stores, run: Run, owner: str = "worker", *, lease_until: str = T1
) -> Run:
    """Insert a run and claim it."""
    added = await add_run(database, stores, run)
    return await claim_run(database, stores, added, owner, lease_until=lease_until)
