"""Artifacts are stored by name and version, and listed by search terms and filters."""

from functools import partial
from typing import Any

import msgspec
import pytest

from internal.agent.domain.artifacts import Artifact, ArtifactFilter
from internal.agent.domain.ids import ArtifactId, RunId, SessionId, TaskId
from internal.agent.domain.tasks import Origin
from internal.agent.store.artifacts import OwnedArtifact
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import CLEANED, HOSTILE, T0, T1, T2, a_session, a_task, an_artifact

A, B = SessionId("session-a"), SessionId("session-b")


def made(number: int, sha256: str = "", **fields: Any) -> Artifact:
    sha256 = sha256 or f"hash-{number}"
    return an_artifact(number, sha256=sha256, **{"session_id": A, **fields})


async def add(
    database: Database, stores: Stores, *artifacts: Artifact, who: str = "local"
) -> list[bool]:
    task = a_task(origin=Origin("web", who))
    return [
        await database.write(partial(stores.artifacts.add, each, task, f"source-{each.id}"))
        for each in artifacts
    ]


async def names(
    database: Database, stores: Stores, principal: str | None = None, **wanted: Any
) -> list[str]:
    work = partial(
        stores.artifacts.list_page, ArtifactFilter(**wanted), principal, before=None, limit=10
    )
    return [f"{each.name} v{each.version}" for each in await database.read(work)]


async def test_new_bytes_are_a_new_version_and_equal_bytes_are_not(
    database: Database, stores: Stores
) -> None:
    first = made(1, "one", name=HOSTILE, caption=HOSTILE)
    added = await add(
        database,
        stores,
        first,
        made(2, "one", name=HOSTILE),
        made(3, "two", name=HOSTILE),
        made(4, "one", name=HOSTILE),
        made(5, "one", name="other"),
        made(6, "one", name="other", session_id=B),
    )
    assert added == [True, False, True, True, True, True]
    stored = await database.read(partial(stores.artifacts.get, first.id))
    clean = msgspec.structs.replace(first, name=CLEANED, caption=CLEANED)
    assert stored == OwnedArtifact(clean, "local")
    assert await database.read(partial(stores.artifacts.get, ArtifactId("artifact-2"))) is None
    newest = await database.read(partial(stores.artifacts.list_newest, A))
    assert [(each.artifact.id, each.artifact.version, each.source) for each in newest] == [
        ("artifact-4", 3, "source-artifact-4"),
        ("artifact-5", 1, "source-artifact-5"),
    ]


async def test_lists_are_newest_first_and_contain_the_newest_versions(
    database: Database, stores: Stores
) -> None:
    await add(database, stores, made(1), made(2, created=T1), made(3, name="b.md", created=T2))
    assert await names(database, stores) == ["b.md v1", "chart.png v2"]
    assert await names(database, stores, versions=True) == [
        "b.md v1",
        "chart.png v2",
        "chart.png v1",
    ]

    def page(before: str | None, principal: str | None = None) -> Any:
        wanted = ArtifactFilter(versions=True)
        return partial(stores.artifacts.list_page, wanted, principal, before=before, limit=2)

    found = await database.read(page(None))
    assert [each.id for each in found] == ["artifact-3", "artifact-2"]
    assert [each.id for each in await database.read(page(found[-1].id))] == ["artifact-1"]
    assert await database.read(page("artifact-9")) == []
    assert await database.read(page(found[-1].id, "somebody else")) == []


@pytest.mark.parametrize("principal", [None, "local"])
async def test_lists_are_filtered(
    database: Database, stores: Stores, principal: str | None
) -> None:
    await add(
        database,
        stores,
        made(1, caption="Sales per region", created=T0),
        made(2, name="Q1_report.PDF", type="document", task_id=TaskId("task-2"), created=T1),
        made(3, name="q1-data.csv", type="table", session_id=B, created=T2),
    )
    await add(database, stores, made(4, name="hers.csv", type="table", session_id=B), who="ana")
    listed = partial(names, database, stores, principal)
    assert await listed(session_id=A) == ["Q1_report.PDF v1", "chart.png v1"]
    assert await listed(session_id=A, task_id=TaskId("task-1")) == ["chart.png v1"]
    assert await listed(task_id=TaskId("task-2")) == ["Q1_report.PDF v1"]
    assert await listed(type="document") == ["Q1_report.PDF v1"]
    assert await listed(text="REGION") == ["chart.png v1"]
    assert await listed(text="q1") == ["q1-data.csv v1", "Q1_report.PDF v1"]
    assert await listed(text="q1_") == ["Q1_report.PDF v1"]
    assert await listed(text="%") == []
    assert await listed(type="table", session_id=B) == (
        ["q1-data.csv v1"] if principal else ["q1-data.csv v1", "hers.csv v1"]
    )


async def test_favourite_and_caption_can_be_changed(database: Database, stores: Stores) -> None:
    chart = made(1)
    await add(database, stores, chart, made(2, name="b.md"))
    marked = msgspec.structs.replace(chart, favourite=True, caption="Best of ALL")
    assert await database.write(partial(stores.artifacts.change, marked))
    assert not await database.write(partial(stores.artifacts.change, made(9)))
    assert await database.read(partial(stores.artifacts.get, chart.id)) == (marked, "local")
    assert await names(database, stores, favourite=True) == ["chart.png v1"]
    assert await names(database, stores, text="best of all") == ["chart.png v1"]
    await add(database, stores, made(3))
    assert await names(database, stores, favourite=True) == ["chart.png v2"]


async def test_a_run_has_the_last_version_that_it_made_of_each_name(
    database: Database, stores: Stores
) -> None:
    later = RunId("run-2")
    await add(
        database, stores, made(1), made(2), made(3, name="b.md"), made(4, run_id=later, created=T1)
    )

    async def of_run(run_id: RunId) -> list[str]:
        return [
            each.id for each in await database.read(lambda: stores.artifacts.list_of_run(run_id))
        ]

    assert await of_run(RunId("run-1")) == ["artifact-2", "artifact-3"]
    assert await of_run(later) == ["artifact-4"]
    await database.write(partial(stores.artifacts.share, ArtifactId("artifact-3"), later))
    assert await of_run(RunId("run-1")) == ["artifact-2"]
    assert await of_run(later) == ["artifact-3", "artifact-4"]
    assert [
        each.artifact.run_id
        for each in await database.read(lambda: stores.artifacts.list_newest(A))
    ] == ["run-1", later]


async def test_artifacts_are_deleted_with_their_session(database: Database, stores: Stores) -> None:
    await database.write(partial(stores.sessions.add, a_session(A)))
    await add(database, stores, made(1), made(2, session_id=B))
    assert await database.write(partial(stores.sessions.delete, A))
    assert await names(database, stores) == ["chart.png v1"]
    assert await names(database, stores, session_id=A) == []
