"""A process that appends events as fast as possible and prints each acknowledged one.

    python -m tests.support.event_writer ADDRESS NAME WRITERS COUNT

Prints a line `run seq position` for each event when its write has returned.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from operator import sub
from pathlib import Path

from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.store_records import a_run, add_running_run, append_events

Ack = tuple[str, int, int]  # run, seq, position


async def write(database: Database, stores: Stores, run: Run, count: int) -> None:
    for seq in range(1, count + 1):
        (position,) = await database.write(lambda: append_events(stores, run))
        sys.stdout.write(f"{run.id} {seq} {position}\n")
        sys.stdout.flush()


async def run_writers(path: str, name: str, writers: int, count: int) -> None:
    stores = Stores()
    async with open_database(path) as database, asyncio.TaskGroup() as tasks:
        for number in range(writers):
            run = a_run(RunId(f"run-{name}-{number}"), f"session-{name}-{number}")
            run = await add_running_run(database, stores, run)
            tasks.create_task(write(database, stores, run, count))


@asynccontextmanager
async def event_writer(
    address: str | Path, name: str, writers: int, each: int
) -> AsyncGenerator[asyncio.subprocess.Process]:
    command = (
        sys.executable,
        "-m",
        "tests.support.event_writer",
        address,
        name,
        str(writers),
        str(each),
    )
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def acks(process: asyncio.subprocess.Process, count: int | None = None) -> list[Ack]:
    """Read `count` acknowledged events of a process, or all until its end."""
    assert process.stdout is not None
    found: list[Ack] = []
    while count is None or len(found) < count:
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):  # killed while writing a line, or at the end
            break
        run, seq, position = line.split()
        found.append((run.decode(), int(seq), int(position)))
    return found


def assert_complete(events: Sequence[Ack], processes: int = 1) -> None:
    """Check that events have the same order by position and by the sequence number of their run.

    Sequence numbers have no gaps, positions have one per process after the first.
    """
    positions = [position for _, _, position in events]
    gaps = [step for step in map(sub, positions[1:], positions) if step != 1]
    assert positions[0] == 1
    assert len(gaps) <= processes - 1
    assert all(gap > 0 for gap in gaps)
    for _, group in groupby(sorted(events), key=lambda event: event[0]):
        run = list(group)
        assert [seq for _, seq, _ in run] == list(range(1, len(run) + 1))
        assert [position for *_, position in run] == sorted(position for *_, position in run)


if __name__ == "__main__":
    asyncio.run(run_writers(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
