"""Start Larkspur so that it crashes at a given commit or time.

`python -m tests.chaos.crash_launcher COUNT_FILE PLAN ARGUMENT…` runs `larkspur ARGUMENT…`.
COUNT_FILE contains the number of commits of the process. PLAN is one of these, or several with +:

- `none`: it does not crash;
- `stored:STATEMENT`, `unstored:STATEMENT`: SIGKILL immediately after or before the first commit
  with that statement of `internal/storage/queries`;
- `before:N`, `after:N`: SIGKILL immediately before or after the N-th commit of the process;
- `term:N`: SIGTERM after the N-th commit;
- `alarm:SECONDS`: killed by the kernel this long after its start;
- `clock:FILE`: the wall clock is ahead by the seconds that FILE contains, now and later;
- `host:NAME`: it runs on a machine of that name, from which no other process can be checked.

The product is not changed: the connection class of the standard library, the clock and the
processes of the machine are replaced before it starts.
"""

import itertools
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


class CrashingConnection(sqlite3.Connection):
    """A connection that counts the commits of its process and kills it at one of them."""

    counted = itertools.count(1)
    count_file = -1
    before = 0
    after = 0
    statement = ""
    is_executed = False
    is_stored = True
    signal = signal.SIGKILL

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql != "commit":
            self.is_executed = self.is_executed or sql == self.statement
            return super().execute(sql, *values)
        number = next(self.counted)
        if number == self.before or (self.is_executed and not self.is_stored):
            os.kill(os.getpid(), self.signal)
        cursor = super().execute(sql)
        os.pwrite(self.count_file, b"%d" % number, 0)
        if number == self.after or self.is_executed:
            os.kill(os.getpid(), self.signal)
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
    """Prepare the crash of this process, and what it sees of its machine."""
    CrashingConnection.count_file = os.open(
        count_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
    )
    for part in plan.split("+"):
        install_part(part)
    sqlite3.connect = partial(sqlite3.connect, factory=CrashingConnection)  # type: ignore[assignment]  # one overload is enough


def install_part(plan: str) -> None:
    """Prepare one part of a plan."""
    kind, _, value = plan.partition(":")
    match kind:
        case "none":
            pass
        case "stored" | "unstored":
            CrashingConnection.statement = queries.load()[value]
            CrashingConnection.is_stored = kind == "stored"
        case "before":
            CrashingConnection.before = int(value)
        case "after":
            CrashingConnection.after = int(value)
        case "term":
            CrashingConnection.after, CrashingConnection.signal = int(value), signal.SIGTERM
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
