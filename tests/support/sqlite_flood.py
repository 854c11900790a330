"""A process that appends events as fast as it can and says each one that was acknowledged.

    python -m tests.support.sqlite_flood FILE NAME WRITERS EACH

`run seq position` a line, on stdout, once the write came back.
"""

import asyncio
import sys

from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.store_facts import a_run, running, say


async def write(database: Database, stores: Stores, run: Run, each: int) -> None:
    for seq in range(1, each + 1):
        (position,) = await database.write(lambda: say(stores, run))
        sys.stdout.write(f"{run.id} {seq} {position}\n")
        sys.stdout.flush()


async def flood(path: str, name: str, writers: int, each: int) -> None:
    stores = Stores()
    async with open_database(path) as database, asyncio.TaskGroup() as tasks:
        for number in range(writers):
            run = a_run(RunId(f"run-{name}-{number}"), f"session-{name}-{number}")
            run = await running(database, stores, run)
            tasks.create_task(write(database, stores, run, each))


if __name__ == "__main__":
    asyncio.run(flood(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
