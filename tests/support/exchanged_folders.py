"""Two names in a folder that change places all the time, as a command in the background can do."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# A line of output says that it has begun.
_PROGRAM = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
os.chdir(sys.argv[1])
print("ready", flush=True)
while True:
    libc.renameat2(-100, sys.argv[2].encode(), -100, sys.argv[3].encode(), 2)  # RENAME_EXCHANGE
"""


@contextlib.contextmanager
def exchanging(folder: Path, *names: str) -> Iterator[None]:
    """Exchange two names in a folder while a block runs."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(folder), *names], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()
