"""Start Larkspur so that it crashes at a given commit or time.

`python -m tests.chaos.crash_launcher COUNT_FILE PLAN ARGUMENT…` runs `larkspur ARGUMENT…`.
COUNT_FILE contains the number of counted commits. PLAN is one of these, or several with +:

- `none`: it does not crash;
- `stored:STATEMENT`, `unstored:STATEMENT`: SIGKILL immediately after or before the first commit
  with that statement of `internal/storage/queries`;
- `before:N`, `after:N`: SIGKILL immediately before or after the N-th commit of the process;
- `from:STATEMENT`: commits are counted from the first one with that statement on;
- `term:N`: SIGTERM after the N-th commit;
- `alarm:SECONDS`: killed by the kernel this long after its start;
- `clock:FILE`: the wall clock is ahead by the seconds that FILE contains, now and later;
- `host:NAME`: it runs on a machine of that name, from which no other process can be checked.

The product is not changed: the classes of connections, the clock and the processes of the machine
are replaced before it starts.
"""

import os
import signal
import sqlite3
import sys
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from internal.observability import clock, processes
from internal.storage import queries
from larkspur.main import main
from tests.chaos.crash_points import Crash


class CrashingConnection(sqlite3.Connection):
    """A connection to a file."""

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql != "commit":
            Crash.note(sql)
            return super().execute(sql, *values)
        Crash.before_commit()
        cursor = super().execute(sql)
        Crash.after_commit()
        return cursor


class ShiftedClock(clock.SystemClock):
    """A wall clock that is ahead by the seconds in a file."""

    file = Path()

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=float(self.file.read_text()))


class OtherMachine(processes.SystemProcesses):
    """The processes of a machine with another name."""

    name = ""

    def __init__(self) -> None:
        super().__init__()
        self._boot = self._host = self.name


def install(count_file: Path, plan: str) -> None:
    """Prepare the crash of this process, and its view of the machine."""
    Crash.count_file = os.open(count_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for part in plan.split("+"):
        install_part(part)
    sqlite3.connect = partial(sqlite3.connect, factory=CrashingConnection)  # type: ignore[assignment]  # one overload is enough
    if os.environ.get("LARKSPUR_DATABASE__URL", "").startswith("postgresql:"):  # noqa: TID251 - to import no other driver
        from tests.chaos import crashing_session  # noqa: PLC0415 - takes 0.2 s to import

        crashing_session.install()


def install_part(plan: str) -> None:
    """Prepare one part of a plan."""
    kind, _, value = plan.partition(":")
    match kind:
        case "none":
            pass
        case "stored" | "unstored":
            Crash.statement = queries.load()[value]
            Crash.is_stored = kind == "stored"
        case "from":
            Crash.first_statement = queries.load()[value]
        case "before":
            Crash.before = int(value)
        case "after":
            Crash.after = int(value)
        case "term":
            Crash.after, Crash.signal = int(value), signal.SIGTERM
        case "alarm":
            # the default action of SIGALRM ends the process without running any Python code
            signal.setitimer(signal.ITIMER_REAL, float(value))
        case "clock":
            ShiftedClock.file = Path(value)
            clock.SystemClock = ShiftedClock  # type: ignore[misc]  # before it is imported by name
        case "host":
            OtherMachine.name = value
            processes.SystemProcesses = OtherMachine  # type: ignore[misc]  # as above
        case _:
            raise SystemExit(f"unknown plan {plan}")


if __name__ == "__main__":
    install(Path(sys.argv[1]), sys.argv[2])
    sys.argv[1:] = sys.argv[3:]
    sys.exit(main())
