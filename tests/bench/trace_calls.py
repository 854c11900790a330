"""Runs Larkspur and records which of its functions are called while recording is on.

`python -m tests.bench.trace_calls OUTPUT ARGUMENT…` runs `larkspur ARGUMENT…`. SIGUSR1 starts a new
recording; SIGUSR2 writes `{"modules": [...], "functions": [...]}` of it to OUTPUT, in the order of
their first calls. Generated functions, comprehensions and module bodies do not count.
"""

import json
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from larkspur.main import main
from tests import ROOT

_OURS = (f"{ROOT}/internal/", f"{ROOT}/cmd/")


class Recorder:
    """Collects the functions that are entered in any thread."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._called: dict[tuple[str, str], None] | None = None

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Record a call; installed with `sys.setprofile`."""
        if self._called is None or event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(_OURS) and not code.co_name.startswith("<"):
            self._called.setdefault((code.co_filename, code.co_qualname))

    def start(self, *_signal: Any) -> None:
        """Begin a new recording, and say so with an empty file OUTPUT.started."""
        self._called = {}
        self._output.with_suffix(".started").touch()

    def write(self, *_signal: Any) -> None:
        """Write the recording and end it."""
        called, self._called = self._called or {}, None
        functions = [f"{Path(file).relative_to(ROOT)}:{name}" for file, name in [*called]]
        modules = list(dict.fromkeys(function.partition(":")[0] for function in functions))
        draft = self._output.with_suffix(".draft")
        draft.write_text(json.dumps({"modules": modules, "functions": functions}))
        draft.rename(self._output)


def run(output: str, *arguments: str) -> int:
    """Run the command under the recorder and return its exit code."""
    recorder = Recorder(Path(output))
    signal.signal(signal.SIGUSR1, recorder.start)
    signal.signal(signal.SIGUSR2, recorder.write)
    threading.setprofile(recorder.profile)
    sys.setprofile(recorder.profile)
    sys.argv = ["larkspur", *arguments]
    return main()


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
