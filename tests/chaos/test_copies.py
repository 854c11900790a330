"""Copies of the data folder of a working gateway: they open, and what was under way goes on.

What is promised for a copy that is taken file by file: `larkspur.db` first, then `larkspur.db-wal`;
when the head of the latter changed meanwhile SQLite had begun it anew, and the copy is taken again.
"""

import asyncio
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from tests.chaos import oracle
from tests.chaos.house import LIVES, House, open_house
from tests.chaos.scene import Person, events_of
from tests.chaos.script import STEERED, STEPS, scripted
from tests.support.anthropic_server import ScriptedAnthropic

SEED = os.environ.get("CHAOS_SEED", "1")  # noqa: TID251 - a word to this test, not to Larkspur
WAL_HEAD = 32  # bytes; https://sqlite.org/fileformat2.html#the_write_ahead_log

Environ = dict[str, str]


def wal_head(home: Path) -> bytes:
    with (home / "larkspur.db-wal").open("rb") as file:
        return file.read(WAL_HEAD)


def copy_folder(home: Path, to: Path) -> None:
    """Copy a folder that is being written, as an operator's script would."""
    last = {"larkspur.db", "larkspur.db-wal", "larkspur.db-shm"}
    shutil.copytree(home, to, ignore=lambda _, names: last & set(names), dirs_exist_ok=True)
    while True:
        head = wal_head(home)
        for name in ("larkspur.db", "larkspur.db-wal"):
            shutil.copy(home / name, to / name)
        if head == wal_head(to):
            return


async def copies_under_load(folder: Path, environ: Environ, most: int, sessions: int) -> list[Path]:
    """Let people work in several sessions and copy the folder at instants drawn by lot."""
    copies: list[Path] = []
    async with (
        ScriptedAnthropic(scripted(STEPS), record=False) as model,
        open_house(folder / "original", model, environ, [LIVES]) as house,
    ):
        model.release(STEERED)
        people = [Person(house, prefix=f"{number}-") for number in range(sessions)]
        async with asyncio.timeout(90), asyncio.TaskGroup() as beside:
            taking = beside.create_task(take_copies(house, copies, most, drawn_waits(sessions)))
            async with asyncio.TaskGroup() as together:
                for person in people:
                    together.create_task(person.act())
            taking.cancel()
        for person in people:
            events = await events_of(house, person.session_id)
            for run in oracle.runs_of(events).values():
                oracle.check_run(run)
    assert len(copies) == most
    return copies


def drawn_waits(sessions: int) -> Iterator[int]:
    """Yield how many events are let pass before the next copy."""
    drawn = random.Random(f"{SEED} copies")  # noqa: S311 - chaos, not a secret
    while True:
        yield drawn.randint(1, 6 * sessions)


async def take_copies(house: House, copies: list[Path], most: int, waits: Iterator[int]) -> None:
    """Copy the folder again and again while events pass."""
    wait = next(waits)
    async with aclosing(house.watch("sessions=*")) as frames:
        async for frame in frames:
            wait -= bool(frame.id)
            if wait <= 0:
                copy = house.folder.with_name(f"copy-{len(copies)}")
                await asyncio.to_thread(copy_folder, house.home, copy / "home")
                copies.append(copy)
                if len(copies) == most:
                    return
                wait = next(waits)


async def resumed(folder: Path, environ: Environ) -> None:
    """Start a gateway on a copy: what was under way comes to its end."""
    with closing(sqlite3.connect(folder / "home" / "larkspur.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    async with (
        ScriptedAnthropic(scripted(STEPS), record=False) as model,
        open_house(folder, model, environ, [LIVES]) as house,
    ):
        model.release(STEERED)
        async with asyncio.timeout(60):
            await all_ended(house)
        for session in (await house.get("/api/sessions?limit=500"))["sessions"]:
            events = await events_of(house, session["session_id"])
            runs = oracle.runs_of(events)
            for run in runs.values():
                oracle.check_run(run)
            oracle.check_lane(runs, events)
        tasks = (await house.get("/api/tasks?limit=500"))["tasks"]
        assert {task["status"] for task in tasks} <= {"completed"}
    oracle.check_file(house.home / "larkspur.db")


async def all_ended(house: House) -> None:
    """Return when no task of the house waits or works any more."""
    async with aclosing(house.watch("sessions=*")) as frames:
        async for frame in frames:
            if frame.event in {"replay.done", *oracle.TERMINAL}:
                tasks = (await house.get("/api/tasks?limit=500"))["tasks"]
                if oracle.ended(tasks):
                    return


async def test_a_copy_goes_on(tmp_path: Path, environ: Environ) -> None:
    (copy,) = await copies_under_load(tmp_path, environ, most=1, sessions=1)
    await resumed(copy, environ)


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_copies_of_any_instant_go_on(tmp_path: Path, environ: Environ) -> None:
    copies = await copies_under_load(tmp_path, environ, most=20, sessions=4)
    assert len(copies) == 20
    for copy in copies:
        await resumed(copy, environ)
