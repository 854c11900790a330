"""Start times of processes, to distinguish processes with the same pid."""

import os
from contextlib import suppress
from pathlib import Path

_ENDED = "ZX"  # states of a process that ended and was not reaped


def find_start(pid: int) -> str | None:
    """Return when a process started, as text that differs from an earlier process with this pid.

    "" if there is no such process or it has ended, None if it may not be inspected.
    """
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # the fields of proc(5) after the name, which may contain anything
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in _ENDED else fields[19]
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return ""
    except PermissionError:
        return None
    return ask_ps(pid) if not Path("/proc/self/stat").exists() else None


def ask_ps(pid: int) -> str | None:
    """Return the result of `find_start` on a system without /proc; None also if there is none."""
    # os.popen imports subprocess only here: `home`, which uses this module, must import fast
    with os.popen(f"LC_ALL=C TZ=UTC0 ps -o stat=,lstart= -p {pid:d} 2>/dev/null") as ps:  # noqa: S605 - no other input
        state, _, start = ps.read().strip().partition(" ")
    if not start:
        return None
    return "" if state[0] in _ENDED else start.strip()
