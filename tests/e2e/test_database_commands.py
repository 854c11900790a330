"""`larkspur db` as processes: beside a running gateway, killed in the middle, and continued."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from internal.config.home import prepare
from internal.storage.maintenance.interface import DatabaseMaintenance
from internal.storage.maintenance.move import NOT_MOVED
from internal.storage.maintenance.selection import find_maintenance
from tests import ROOT
from tests.support.database_files import execute, query
from tests.support.database_rows import all_rows, fill_tables, moved_tables
from tests.support.gateway_process import LARKSPUR, run_task, running_gateway
from tests.support.postgres_server import postgres_url
from tests.support.small_disk import SmallDisk, small_disk
from tests.support.stored_events import events, read, was_reset

OLD = "2026-01-01T00:00:00.000Z"
MAX_ATTEMPTS = 40


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[str]:
    """The URL of a database without rows."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/target.db"
    else:
        async with postgres_url() as url:
            yield url


async def larkspur(environ: dict[str, str], *argv: str) -> tuple[int, str, str]:
    process = await start(environ, LARKSPUR, *argv)
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def start(environ: dict[str, str], *argv: str | Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *argv,
        env={**environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def crash(environ: dict[str, str], folder: Path, plan: str, *argv: str) -> bool:
    """Run a command that is killed by a plan of `tests.chaos.crash_launcher`. True if it ended."""
    launcher = (sys.executable, "-m", "tests.chaos.crash_launcher")
    process = await start(environ, *launcher, folder / "count", plan, *argv)
    _, err = await process.communicate()
    assert process.returncode in {0, -9}, err.decode()
    return process.returncode == 0


async def check_equal(source: DatabaseMaintenance, target: DatabaseMaintenance) -> None:
    async with source.snapshot() as one, target.snapshot() as other:
        for table in await moved_tables(one):
            assert await all_rows(one, table) == await all_rows(other, table)


@pytest.mark.slow
async def test_a_move_that_is_killed_again_and_again_loses_nothing(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    """SIGKILL before and after commits of the target, until the move is finished."""
    prepare(home)
    source = find_maintenance(home / "larkspur.db")
    async with source.target() as tables:
        await fill_tables(tables, 1_100)
    url = f"sqlite:///{tmp_path}/target.db"
    attempts = 1
    while not await crash(
        environ,
        tmp_path,
        f"{'before' if attempts % 2 else 'after'}:{18 + attempts % 5}",
        *("db", "move", "--to", url),
    ):
        attempts += 1
        assert attempts < MAX_ATTEMPTS
    assert attempts > 5
    await check_equal(source, find_maintenance(url))


@pytest.mark.slow
@pytest.mark.postgres
async def test_a_move_to_postgresql_that_is_killed_loses_nothing(
    home: Path, environ: dict[str, str]
) -> None:
    prepare(home)
    source = find_maintenance(home / "larkspur.db")
    async with source.target() as tables:
        await fill_tables(tables, 1_100)
    async with postgres_url() as url:
        for tables_copied in (1, 4, 9):
            process = await start(environ, LARKSPUR, "db", "move", "--to", url)
            assert process.stderr is not None
            for _ in range(tables_copied):
                assert b"rows copied" in await process.stderr.readline()
            process.kill()
            await process.communicate()
        code, out, err = await larkspur(environ, "db", "move", "--to", url)
        assert code == 0, err
        assert "were moved and compared" in out
        assert "larkspur:" not in out + err, "the password"
        await check_equal(source, find_maintenance(url))


@pytest.mark.slow
async def test_clients_continue_after_a_move_with_the_cursors_that_they_have(
    home: Path, environ: dict[str, str], target: str
) -> None:
    async with running_gateway(environ, home) as gateway:
        session = await run_task(gateway.client, "what is 1+1?")
        known = events(await read(gateway.client, session))
        code, _, err = await larkspur(environ, "db", "move", "--to", target)
        assert (code, "already serves the database" in err) == (2, True)
    code, _, err = await larkspur(environ, "db", "move", "--to", target)
    assert code == 0, err
    code, _, err = await larkspur(environ, "serve", "--port", "0")
    assert (code, "was moved to" in err) == (3, True)

    environ = {**environ, "LARKSPUR_DATABASE__URL": target}
    async with running_gateway(environ, home) as gateway:
        await run_task(gateway.client, "what is 2+2?", session)
        stored = events(await read(gateway.client, session))
        assert stored[: len(known)] == known
        for number, (event_id, _) in enumerate(known, 1):
            frames = await read(gateway.client, session, event_id)
            assert not was_reset(frames)
            assert events(frames) == stored[number:]
        shown = (await gateway.client.get(f"/api/sessions/{session}/messages")).json()
        assert len(shown["messages"]) == 4


@pytest.mark.slow
async def test_the_database_is_shown_copied_and_compacted_beside_a_gateway(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    async with running_gateway(environ, home) as gateway:
        session = await run_task(gateway.client, "what is 1+1?")
        code, out, _ = await larkspur(environ, "db", "status", "--json")
        assert code == 0
        status = json.loads(out)
        assert status["runs"] == {"completed": 1}
        assert [owner.partition("-")[0] for owner in status["processes"]] == ["gateway"]
        for argv in (
            ("backup", str(backup)),
            ("export", str(tmp_path / "rows.jsonl")),
            ("vacuum",),
            ("prune",),
            ("migrate",),
        ):
            code, _, err = await larkspur(environ, "db", *argv)
            assert code == 0, err
        await run_task(gateway.client, "what is 2+2?", session)
    assert query(backup, "select count(*) from runs") == [(1,)]
    assert query(home / "larkspur.db", "select count(*) from runs") == [(2,)]


@pytest.mark.slow
async def test_retention_that_is_killed_removes_sessions_as_a_whole(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    """Each attempt is killed one commit later; the last one removes the rest."""
    database = home / "larkspur.db"
    environ = {**environ, "LARKSPUR_RETENTION__SESSIONS_DAYS": "30"}
    async with running_gateway(environ, home) as gateway:
        removed = [await run_task(gateway.client, "what is 1+1?") for _ in range(3)]
        kept = await run_task(gateway.client, "what is 2+2?")
        for session in (*removed, kept):  # as a tool call does
            (home / "workspaces" / session).mkdir(parents=True)
    names = ", ".join(f"'{session}'" for session in removed)
    execute(database, f"update sessions set updated = '{OLD}' where id in ({names})")  # noqa: S608 - ids
    number = 1
    while not await crash(environ, tmp_path, f"after:{number}", "db", "prune"):
        number += 1
        assert number < MAX_ATTEMPTS
        for session in removed:
            is_left = query(database, f"select 1 from sessions where id = '{session}'")  # noqa: S608 - an id
            runs = query(database, f"select 1 from runs where session_id = '{session}'")  # noqa: S608 - an id
            assert bool(is_left) is bool(runs)
    assert number > 3
    assert query(database, "select id from sessions") == [(kept,)]
    assert query(database, "select distinct session_id from event_runs") == [(kept,)]
    assert query(database, "select * from file_removals") == []
    assert [path.name for path in (home / "workspaces").iterdir()] == [kept]
    assert query(database, "pragma integrity_check") == [("ok",)]


@pytest.mark.slow
async def test_a_full_or_read_only_disk_is_refused_and_the_move_continues_later(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    prepare(home)
    source = find_maintenance(home / "larkspur.db")
    async with source.target() as tables:
        await fill_tables(tables, 300)
    async with small_disk(tmp_path / "disk", 40) as disk:
        url = f"sqlite:///{disk.path}/target.db"

        async def on_disk(*argv: str, **more: str) -> tuple[int | None, str]:
            process = await start({**environ, **more}, *disk.prefix, LARKSPUR, *argv)
            _, err = await process.communicate()
            return process.returncode, err.decode().strip().rpartition("\n")[2]

        disk.fill()
        leave_free(disk, 2_500_000)
        full = f"The disk of the database {disk.path}/target.db is full: nothing was written."
        assert await on_disk("db", "move", "--to", url) == (1, f"{full} Free some space.")
        disk.free()
        code, message = await on_disk("db", "move", "--to", url)
        assert code == 0, message

        exports = [tmp_path / "source.jsonl", tmp_path / "target.jsonl"]
        assert (await on_disk("db", "export", str(exports[0])))[0] == 0
        moved = {"LARKSPUR_DATABASE__URL": url}
        assert (await on_disk("db", "export", str(exports[1]), **moved))[0] == 0
        assert exported_rows(exports[0]) == exported_rows(exports[1])

        await disk.make_read_only()
        for argv in (("backup", f"{disk.path}/a.db"), ("export", f"{disk.path}/a.jsonl")):
            refused = f"{argv[1]} cannot be written: read-only file system."
            assert await on_disk("db", *argv) == (1, refused)
        code, message = await on_disk("db", "prune", **moved)
        assert (code, message) == (1, f"The folder {disk.path} of the database is not writable.")


def leave_free(disk: SmallDisk, size: int) -> None:
    filling = disk.outside / "filling"
    os.truncate(filling, filling.stat().st_size - size)


def exported_rows(path: Path) -> list[str]:
    """Return the rows of an export without the rows that belong to a single database."""
    _, *lines = path.read_text().splitlines()
    return [line for line in lines if json.loads(line)["table"] not in NOT_MOVED]
