"""Start Larkspur so that it crashes at a given commit or time.

`python -m tests.chaos.crash_launcher COUNT_FILE PLAN ARGUMENT…` runs `larkspur ARGUMENT…`.
COUNT_FILE contains the number of commits of the process. PLAN is

- `none`: it does not crash;
- `stored:STATEMENT`, `unstored:STATEMENT`: SIGKILL immediately after or before the first commit
  with that statement of `internal/storage/queries`;
- `before:N`, `after:N`: SIGKILL immediately before or after the N-th commit of the process;
- `term:N`: SIGTERM after the N-th commit;
- `alarm:SECONDS`: killed by the kernel this long after its start.

The product is not changed: only the classes of connections are replaced.
"""

import itertools
import os
import signal
import sqlite3
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

from internal.storage import queries
from larkspur.main import main


class Crash:
    """Counts the commits of its process and kills it at one of them. A base of connections."""

    counted = itertools.count(1)
    count_file = -1
    before = 0
    after = 0
    statement = ""
    is_executed = False
    is_stored = True
    signal = signal.SIGKILL

    def note(self, sql: str) -> None:
        self.is_executed = self.is_executed or sql == self.statement

    @contextmanager
    def counted_commit(self) -> Generator[None]:
        number = next(self.counted)
        if number == self.before or (self.is_executed and not self.is_stored):
            os.kill(os.getpid(), self.signal)
        yield
        os.pwrite(self.count_file, b"%d" % number, 0)
        if number == self.after or self.is_executed:
            os.kill(os.getpid(), self.signal)


class CrashingConnection(Crash, sqlite3.Connection):
    """A connection to a file."""

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self.note(sql)
        with self.counted_commit() if sql == "commit" else nullcontext():
            return super().execute(sql, *values)


class CrashingPostgresConnection(Crash, asyncpg.Connection):
    """A connection to a server."""

    async def execute(self, query: str, *args: object, timeout: float | None = None) -> str:  # noqa: ASYNC109 - asyncpg's
        with self.counted_commit() if query == "commit" else nullcontext():
            return await super().execute(query, *args, timeout=timeout)

    async def fetch(self, query: str, *args: object, **options: Any) -> Any:
        self.note(query)
        return await super().fetch(query, *args, **options)

    async def executemany(self, command: str, args: Any, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncpg's
        self.note(command)
        await super().executemany(command, args, timeout=timeout)


def install_crash(count_file: Path, plan: str) -> None:
    """Prepare the crash of this process."""
    Crash.count_file = os.open(count_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    kind, _, value = plan.partition(":")
    match kind:
        case "none":
            pass
        case "stored" | "unstored":
            Crash.statement = queries.load()[value]
            Crash.is_stored = kind == "stored"
        case "before":
            Crash.before = int(value)
        case "after":
            Crash.after = int(value)
        case "term":
            Crash.after, Crash.signal = int(value), signal.SIGTERM
        case "alarm":
            # the default action of SIGALRM ends the process without running any Python code
            signal.setitimer(signal.ITIMER_REAL, float(value))
        case _:
            raise SystemExit(f"unknown plan {plan}")
    sqlite3.connect = partial(sqlite3.connect, factory=CrashingConnection)  # type: ignore[assignment]  # one overload is enough
    asyncpg.connect = partial(asyncpg.connect, connection_class=CrashingPostgresConnection)  # type: ignore[assignment]  # as above


if __name__ == "__main__":
    install_crash(Path(sys.argv[1]), sys.argv[2])
    sys.argv[1:] = sys.argv[3:]
    sys.exit(main())
