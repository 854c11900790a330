"""A restored database: event cursors from before the restoration are recognised.

Each test runs real `larkspur serve` processes with the offline model.
"""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.config.home import prepare
from internal.storage.maintenance.sqlite_files import back_up
from tests.support.gateway_process import run_task, serve
from tests.support.stored_events import events, read, was_reset


def copy_files(home: Path, backup: Path) -> None:
    """Copy the database with plain file copies."""
    backup.mkdir()
    for file in home.glob("larkspur.db*"):
        shutil.copy(file, backup)


def copy_with_backup(home: Path, backup: Path) -> None:
    """Copy the database as docs/storage.md says for a running gateway."""
    backup.mkdir()
    back_up(home / "larkspur.db", backup / "larkspur.db")


def put_back_in_place(home: Path, backup: Path) -> None:
    """Overwrite the files, which keep their inodes."""
    for name in ("larkspur.db-wal", "larkspur.db-shm"):
        (home / name).unlink(missing_ok=True)
    for file in backup.iterdir():
        shutil.copy(file, home)


def replace_files(home: Path, backup: Path) -> None:
    """Delete the files and put copies in their place."""
    for file in home.glob("larkspur.db*"):
        file.unlink()
    for file in backup.iterdir():
        shutil.copy2(file, home)


@pytest.mark.parametrize(
    "restore", [pytest.param(put_back_in_place, marks=pytest.mark.slow), replace_files]
)
@pytest.mark.parametrize(
    "back_up", [pytest.param(copy_files, marks=pytest.mark.slow), copy_with_backup]
)
@pytest.mark.slow
async def test_a_cursor_of_lost_events_is_reset(
    tmp_path: Path,
    back_up: Callable[[Path, Path], None],
    restore: Callable[[Path, Path], None],
) -> None:
    home, backup = prepare(tmp_path / "home"), tmp_path / "backup"
    async with serve(home, signal.SIGKILL) as client:
        session = await run_task(client, "what is 1+1?")
        kept = events(await read(client, session))
        back_up(home, backup)
        await run_task(client, "what is 2+2?", session)
        lost = events(await read(client, session))[len(kept) :]
    restore(home, backup)
    async with serve(home) as client:
        # as many events as were lost: without a trace of the restoration their positions overlap
        await run_task(client, "what is 3+3?", session)
        await run_task(client, "what is 4+4?", session)
        stored = events(await read(client, session))
        assert stored[: len(kept)] == kept
        for event_id, _ in lost:
            frames = await read(client, session, event_id)
            assert was_reset(frames)
            assert events(frames) == stored
            page = await client.get(f"/api/sessions/{session}/events?after={event_id}")
            assert page.status == 410
        for number, (event_id, _) in enumerate(kept, 1):
            frames = await read(client, session, event_id)
            assert not was_reset(frames)
            assert events(frames) == stored[number:]


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
async def test_a_cursor_stays_valid_after_a_restart(tmp_path: Path, end: signal.Signals) -> None:
    home = prepare(tmp_path / "home")
    async with serve(home, end) as client:
        session = await run_task(client, "what is 1+1?")
        first = events(await read(client, session))
    async with serve(home, end) as client:
        await run_task(client, "what is 2+2?", session)
        second = events(await read(client, session))
        assert second[: len(first)] == first
    async with serve(home) as client:
        for number, (event_id, _) in enumerate(second, 1):
            frames = await read(client, session, event_id)
            assert not was_reset(frames)
            assert events(frames) == second[number:]
