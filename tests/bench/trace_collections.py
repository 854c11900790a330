"""Runs Larkspur and records its full garbage collections.

`python -m tests.bench.trace_collections OUTPUT ARGUMENT…` runs `larkspur ARGUMENT…` and appends the
milliseconds of CPU of each full collection to OUTPUT, a line each.
"""

import gc
import sys
import time
from pathlib import Path
from typing import Any

from larkspur.main import main


def record(output: Path) -> None:
    """Record the full collections from now on."""
    begun = 0.0

    def on_collection(phase: str, info: dict[str, Any]) -> None:
        nonlocal begun
        if info["generation"] != 2:
            return
        if phase == "start":
            begun = time.thread_time()
            return
        with output.open("a", encoding="utf-8") as lines:
            lines.write(f"{(time.thread_time() - begun) * 1000}\n")

    gc.callbacks.append(on_collection)


if __name__ == "__main__":
    record(Path(sys.argv.pop(1)))
    sys.exit(main())
