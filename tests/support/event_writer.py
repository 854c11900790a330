"""A process that appends events as fast as possible and prints each acknowledged one.

    python -m tests.support.event_writer FILE NAME WRITERS COUNT

Prints a line `run seq position` for each event when its write has returned.
"""

import asyncio
import sys

from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.store_records import a_run, add_running_run, append_events


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


if __name__ == "__main__":
    asyncio.run(run_writers(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
