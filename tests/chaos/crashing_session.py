"""Sessions of PostgreSQL that kill their process at a commit."""

from functools import partial
from typing import Any

import asyncpg

from tests.chaos.crash_points import Crash


class CrashingSession(asyncpg.Connection):
    """A connection to a server."""

    async def execute(self, query: str, *values: Any, **options: Any) -> str:
        if query != "commit":
            return await super().execute(query, *values, **options)
        Crash.before_commit()
        status = await super().execute(query, **options)
        Crash.after_commit()
        return status

    async def fetch(self, query: str, *values: Any, **options: Any) -> list[Any]:
        Crash.note(query)
        rows: list[Any] = await super().fetch(query, *values, **options)
        return rows

    async def executemany(self, command: str, *values: Any, **options: Any) -> None:
        Crash.note(command)
        await super().executemany(command, *values, **options)


def install() -> None:
    """Let every connection of this process be such a session."""
    asyncpg.connect = partial(asyncpg.connect, connection_class=CrashingSession)  # type: ignore[assignment]  # an overloaded function
