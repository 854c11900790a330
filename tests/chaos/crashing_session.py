"""Sessions of PostgreSQL that kill their process at a commit."""

from functools import partial
from typing import Any

import asyncpg

from internal.storage import queries
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
        for statement in _parts(query):
            Crash.note(statement)
        rows: list[Any] = await super().fetch(query, *values, **options)
        return rows

    async def executemany(self, command: str, *values: Any, **options: Any) -> None:
        Crash.note(command)
        await super().executemany(command, *values, **options)


def _parts(query: str) -> list[str]:
    """Return the named statements that the driver has joined in one."""
    if not query.startswith("with "):
        return [query]
    named = queries.load().items()
    return [sql for name, sql in named if f" {name} as (" in query or query.endswith(sql)]


def install() -> None:
    """Let every connection of this process be such a session."""
    asyncpg.connect = partial(asyncpg.connect, connection_class=CrashingSession)  # type: ignore[assignment]  # an overloaded function
