"""Start Larkspur under a recorder of its processes, connections, imports and file changes.

`python -m tests.support.recorded_launcher LOG_FILE ARGUMENT…` runs `larkspur ARGUMENT…`. LOG_FILE
gets a JSON line `[kind, text]` for each event. The kinds are `run` (the arguments of a process),
`connect` (an address), `code` (the file of executed Python code) and `change` (a path that is
opened for writing, renamed, removed or created).
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

_RUNS = {"subprocess.Popen": 1, "os.exec": 1, "os.posix_spawn": 1, "os.system": 0}
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod"}
_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def describe(event: str, given: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of an audit event, see https://peps.python.org/pep-0578/."""
    if event in _RUNS:
        found = given[_RUNS[event]]
        yield "run", " ".join(map(_text, found if isinstance(found, list | tuple) else [found]))
    elif event == "socket.connect":
        yield "connect", str(given[1])
    elif event == "exec":
        yield "code", str(given[0].co_filename)
    elif event in _CHANGES:
        yield from (("change", _text(each)) for each in given[:2] if isinstance(each, str | bytes))
    elif event == "open" and (given[2] or 0) & _WRITE:
        yield "change", _text(given[0])


def _text(value: object) -> str:
    return os.fsdecode(value) if isinstance(value, str | bytes | os.PathLike) else str(value)


def main() -> int:
    """Run Larkspur; return its exit code."""
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)

    def record(event: str, given: tuple[Any, ...]) -> None:
        for found in describe(event, given):
            os.write(log, json.dumps(found).encode() + b"\n")

    sys.argv[1:2] = []
    sys.addaudithook(record)
    from larkspur.main import main as larkspur  # noqa: PLC0415 - its import is recorded as well

    return larkspur()


if __name__ == "__main__":
    sys.exit(main())
