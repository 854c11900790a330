"""Copies of the data folder of a busy gateway can be opened, and their runs continue.

A copy is taken file by file: `larkspur.db` first, then `larkspur.db-wal`. It is taken again when
SQLite restarted the log meanwhile, which changes its header.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from tests.chaos import invariants
from tests.chaos.model_script import STEERED, STEPS, scripted_model
from tests.chaos.restarting_gateway import NO_CRASH, RestartingGateway, restarting_gateway
from tests.chaos.scenario import ScriptedUser, list_events
from tests.chaos.seeds import seeded
from tests.support.openai_server import ScriptedOpenAI

WAL_HEAD = 32  # bytes; https://sqlite.org/fileformat2.html#the_write_ahead_log

Environ = dict[str, str]


def wal_head(home: Path) -> bytes:
    with (home / "larkspur.db-wal").open("rb") as file:
        return file.read(WAL_HEAD)


def copy_folder(home: Path, to: Path) -> None:
    """Copy a folder that is being written to."""
    last = {"larkspur.db", "larkspur.db-wal", "larkspur.db-shm"}
    shutil.copytree(home, to, ignore=lambda _, names: last & set(names), dirs_exist_ok=True)
    while True:
        head = wal_head(home)
        for name in ("larkspur.db", "larkspur.db-wal"):
            shutil.copy(home / name, to / name)
        if head == wal_head(to):
            return


async def copies_under_load(folder: Path, environ: Environ, most: int, sessions: int) -> list[Path]:
    """Copy the folder at random times while several users work."""
    copies: list[Path] = []
    async with (
        ScriptedOpenAI(scripted_model(STEPS), record=False) as model,
        restarting_gateway(folder / "original", model, environ, [NO_CRASH]) as gateway,
    ):
        model.release(STEERED)
        users = [ScriptedUser(gateway, prefix=f"{number}-") for number in range(sessions)]
        async with asyncio.timeout(90), asyncio.TaskGroup() as copying:
            taking = copying.create_task(take_copies(gateway, copies, most, random_waits(sessions)))
            async with asyncio.TaskGroup() as group:
                for user in users:
                    group.create_task(user.run())
            taking.cancel()
        for user in users:
            events = await list_events(gateway, user.session_id)
            for run in invariants.group_by_run(events).values():
                invariants.check_run(run)
    assert len(copies) == most
    return copies


MAX_DELAY_SECONDS = 0.03
"""The longest time between an event and the copy: the next commits happen meanwhile."""


def random_waits(sessions: int) -> Iterator[tuple[int, float]]:
    """Yield the number of events before the next copy, and the seconds after the last of them."""
    rng = seeded("copies")
    while True:
        yield rng.randint(1, 6 * sessions), rng.uniform(0, MAX_DELAY_SECONDS)


async def take_copies(
    gateway: RestartingGateway, copies: list[Path], most: int, waits: Iterator[tuple[int, float]]
) -> None:
    """Copy the folder repeatedly while events arrive."""
    wait, delay = next(waits)
    async with aclosing(gateway.stream("sessions=*")) as frames:
        async for frame in frames:
            wait -= bool(frame.id)
            if wait <= 0:
                await asyncio.sleep(delay)  # any instant
                copy = gateway.folder.with_name(f"copy-{len(copies)}")
                await asyncio.to_thread(copy_folder, gateway.home, copy / "home")
                copies.append(copy)
                if len(copies) == most:
                    return
                wait, delay = next(waits)


async def resume_copy(folder: Path, environ: Environ) -> None:
    """Start a gateway on a copy and wait until its runs have ended."""
    with closing(sqlite3.connect(folder / "home" / "larkspur.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    async with (
        ScriptedOpenAI(scripted_model(STEPS), record=False) as model,
        restarting_gateway(folder, model, environ, [NO_CRASH]) as gateway,
    ):
        model.release(STEERED)
        async with asyncio.timeout(60):
            await wait_until_all_ended(gateway)
        for session in (await gateway.get("/api/sessions?limit=500"))["sessions"]:
            events = await list_events(gateway, session["session_id"])
            runs = invariants.group_by_run(events)
            for run in runs.values():
                invariants.check_run(run)
            invariants.check_lane(runs, events)
        tasks = (await gateway.get("/api/tasks?limit=500"))["tasks"]
        assert {task["status"] for task in tasks} <= {"completed"}
    invariants.check_file(gateway.home / "larkspur.db")


async def wait_until_all_ended(gateway: RestartingGateway) -> None:
    """Wait until every task has ended."""
    async with aclosing(gateway.stream("sessions=*")) as frames:
        async for frame in frames:
            if frame.event in {"replay.done", *invariants.TERMINAL}:
                tasks = (await gateway.get("/api/tasks?limit=500"))["tasks"]
                if invariants.have_ended(tasks):
                    return


@pytest.mark.slow
async def test_runs_of_a_copy_continue(tmp_path: Path, environ: Environ) -> None:
    (copy,) = await copies_under_load(tmp_path, environ, most=1, sessions=1)
    await resume_copy(copy, environ)


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_runs_of_copies_at_random_times_continue(tmp_path: Path, environ: Environ) -> None:
    copies = await copies_under_load(tmp_path, environ, most=20, sessions=4)
    assert len(copies) == 20
    for copy in copies:
        await resume_copy(copy, environ)
