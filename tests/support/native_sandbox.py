"""Trees of processes in a sandbox without programs of the system."""

from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


TREES = {
    "children": "sleep 600 & echo $!; sleep 600 & echo $!; echo $$ ready; wait",
    "a stubborn one": "trap '' TERM INT HUP; echo $$ ready; while :; do sleep 1; done",
    "stubborn children": "(trap '' TERM; while :; do sleep 600; done) & echo $! $$ ready; wait",
    "setsid": "setsid sleep 600 & echo $! $$ ready; wait",
    "a daemon": (
        "(setsid bash -c 'trap \"\" TERM; echo $$ > pid; sleep 600; sleep 600' &) ;"
        "until [ -s pid ]; do sleep 0.01; done; cat pid; echo $$ ready; sleep 600"
    ),
    "a stopped one": "sleep 600 & kill -STOP $!; echo $! $$ ready; wait",
}
