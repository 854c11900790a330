"""Displays of runs: who holds them, and which are listed."""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.run_displays import DisplayHolder, RunDisplays
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Origin
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Write
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from internal.storage.database_url import open_database
from tests.support.store_records import T0, a_run, a_session, a_task

RUN = RunId("run-1")
ONE, TWO = DisplayHolder("echo:a", "one"), DisplayHolder("echo:a", "two")


@pytest.fixture
async def displays(tmp_path: Path) -> AsyncGenerator[RunDisplays]:
    stores = Stores()
    async with open_database(tmp_path / "larkspur.db") as database:
        origin = Origin("echo", "echo:a:mei", "a", "chat", "m1")
        await database.write(partial(stores.sessions.add, a_session()))
        for number, one in ((1, origin), (2, Origin("web", "local"))):
            task = a_task(f"task-{number}", origin=one)
            await database.write(partial(stores.tasks.add, task, None))
            await database.write(partial(stores.runs.add, a_run(f"run-{number}"), T0))
        yield RunDisplays(database, stores, SystemClock())


async def test_a_display_is_held_by_one_process(displays: RunDisplays) -> None:
    claimed = await displays.claim(RUN, ONE, 60.0)
    assert claimed is not None
    assert (claimed.run.id, claimed.task.instruction) == (RUN, "count")
    assert await displays.claim(RUN, TWO, 60.0) is None
    assert not await displays.save(claimed.display, TWO, 60.0)
    assert await displays.save(claimed.display._replace(state="{}"), ONE, -1.0)
    [abandoned] = await displays.list_abandoned("echo:a")
    assert abandoned.state == "{}"
    assert await displays.claim(RUN, TWO, 60.0) is not None


async def test_a_closed_display_is_never_claimed_again(displays: RunDisplays) -> None:
    claimed = await displays.claim(RUN, ONE, 60.0)
    assert claimed is not None
    await displays.close(claimed.display, ONE)
    assert await displays.claim(RUN, TWO, 60.0) is None
    assert await displays.list_abandoned("echo:a") == []


async def test_a_run_that_ended_before_it_was_displayed_has_no_display(
    displays: RunDisplays,
) -> None:
    await end(displays)
    assert await displays.claim(RUN, ONE, 60.0) is None
    assert await displays.get(RUN, "echo:a") is None


async def test_a_display_is_continued_after_the_end_of_its_run(displays: RunDisplays) -> None:
    assert await displays.claim(RUN, ONE, -1.0) is not None
    await end(displays)
    assert await displays.claim(RUN, TWO, 60.0) is not None


async def test_a_run_from_elsewhere_has_no_display(displays: RunDisplays) -> None:
    assert await displays.claim(RunId("run-2"), ONE, 60.0) is None
    assert await displays.claim(RUN, DisplayHolder("echo:b", "one"), 60.0) is None


async def test_an_unknown_run_has_no_display(displays: RunDisplays) -> None:
    assert await displays.claim(RunId("run-9"), ONE, 60.0) is None
    assert not await displays.is_waiting(RunId("run-9"))
    assert await displays.list_events(RUN) == []


async def test_only_runs_from_chats_of_the_channel_are_listed(displays: RunDisplays) -> None:
    assert await displays.list_unfinished("echo:a") == [RUN]
    assert await displays.list_unfinished("echo:a", after=RUN) == []
    assert await displays.list_unfinished("echo:b") == []


async def test_the_runs_after_one_are_listed_when_it_has_ended(displays: RunDisplays) -> None:
    origin = Origin("echo", "echo:a:mei", "a", "chat", "m2")
    write, stores = displays._database.write, displays._stores
    await write(partial(stores.tasks.add, a_task("task-3", origin=origin), None))
    await write(partial(stores.runs.add, a_run("run-3"), T0))
    assert await displays.list_unfinished("echo:a", after=RUN) == []
    await end(displays)
    assert await displays.list_unfinished("echo:a", after=RUN) == [RunId("run-3")]
    assert await displays.list_unfinished("echo:b", after=RUN) == []


async def end(displays: RunDisplays) -> None:
    """Complete the run."""

    def work() -> Write[None]:
        runs = displays._stores.runs
        run = yield from runs.claim(RUN, "worker", lease_until="2999", now=T0)
        assert run is not None
        completed = RunEnd("completed", "final_answer", Usage(), 0.0, "", "", T0)
        assert (yield from runs.end(RUN, run.fence, completed))

    await displays._database.write(work)
