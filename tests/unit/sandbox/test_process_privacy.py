"""Protection of this process from its children."""

import subprocess
import sys

PROGRAM = """
import ctypes, sys
from internal.sandbox.process_privacy import deny_process_inspection
PR_GET_DUMPABLE = 3
before = ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)
denied = deny_process_inspection()
print(before, denied, ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0))
"""


def test_the_process_is_not_dumpable_afterwards() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True
    )
    assert done.stdout.split() == ["1", "True", "0"]
