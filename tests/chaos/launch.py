"""Starts Larkspur so that it dies at one exact instant.

`python -m tests.chaos.launch COUNT_FILE PLAN ARGUMENT…` runs `larkspur ARGUMENT…`; COUNT_FILE
always holds how many commits the process has done. PLAN is

- `none`: it lives;
- `before:N`, `after:N`: SIGKILL immediately before, or after, the N-th commit of the process;
- `term:N`: SIGTERM after the N-th commit, as an operator's stop that happens to come there;
- `alarm:SECONDS`: the kernel ends it so long after its start, whatever it does then.

The product knows nothing of this: only the connection class of the standard library is another.
"""

import itertools
import os
import signal
import sqlite3
import sys
from functools import partial
from pathlib import Path
from typing import Any

from larkspur.main import main


class Doomed(sqlite3.Connection):
    """A connection whose process may die at a commit; commits are counted in the process."""

    counted = itertools.count(1)
    count_file = -1
    before = 0
    after = 0
    signal = signal.SIGKILL

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql != "commit":
            return super().execute(sql, *values)
        number = next(self.counted)
        if number == self.before:
            os.kill(os.getpid(), self.signal)
        cursor = super().execute(sql)
        os.pwrite(self.count_file, b"%d" % number, 0)
        if number == self.after:
            os.kill(os.getpid(), self.signal)
        return cursor


def doom(count_file: Path, plan: str) -> None:
    """Arrange this process's death."""
    Doomed.count_file = os.open(count_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    kind, _, value = plan.partition(":")
    match kind:
        case "none":
            pass
        case "before":
            Doomed.before = int(value)
        case "after":
            Doomed.after = int(value)
        case "term":
            Doomed.after, Doomed.signal = int(value), signal.SIGTERM
        case "alarm":
            # the default of SIGALRM is death, by the kernel: no line of Python is waited for
            signal.setitimer(signal.ITIMER_REAL, float(value))
        case _:
            raise SystemExit(f"unknown plan {plan}")
    sqlite3.connect = partial(sqlite3.connect, factory=Doomed)  # type: ignore[assignment]  # one overload is enough


if __name__ == "__main__":
    doom(Path(sys.argv[1]), sys.argv[2])
    sys.argv[1:] = sys.argv[3:]
    sys.exit(main())
