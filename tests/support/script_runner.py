"""Scripts run in processes of their own, which are forked from one interpreter.

Starting an interpreter and its imports takes many times as long as a fork. The interpreter is
isolated (`-I`) and runs no script itself, so no script sees the effects of another one.
"""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import NoReturn


class ScriptRunner:
    """Runs scripts one after the other. The interpreter ends at `close`."""

    def __init__(self, *imports: str) -> None:
        """Start the interpreter, which imports these modules."""
        self._server = subprocess.Popen(
            [sys.executable, "-I", __file__, *imports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, script: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a script until it ends, and return its exit code and its output."""
        command = [str(script), *map(str, arguments)]
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(command) + "\n")
        self._server.stdin.flush()
        code, output, errors = json.loads(self._server.stdout.readline())
        return subprocess.CompletedProcess(command, code, output, errors)

    def close(self) -> None:
        self._server.communicate()


def _serve(imports: Sequence[str]) -> None:
    for name in imports:
        __import__(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_run(json.loads(line))) + "\n")
        sys.stdout.flush()


def _run(command: list[str]) -> tuple[int, str, str]:
    with TemporaryFile() as output, TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            _execute(command, output.fileno(), errors.fileno())
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode())
    return os.waitstatus_to_exitcode(status), texts[0], texts[1]


def _execute(command: list[str], output: int, errors: int) -> NoReturn:
    """Run a script in this process as the main program, and end the process with its exit code."""
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, errors)):
        os.dup2(file, number)
    code: object = 0
    try:
        sys.argv = command
        runpy.run_path(command[0], run_name="__main__")
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - as the interpreter does
        sys.excepthook(*sys.exc_info())
        code = 1
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _serve(sys.argv[1:])
