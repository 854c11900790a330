"""What a confined process cannot do."""

import subprocess
import sys

import pytest

_CONFINED = """\
import ctypes, os, socket, sys
from internal.documents.confinement import deny_system_calls, limit_resources
limit_resources(512 << 20, 5)
assert deny_system_calls()
try:
    {}
except PermissionError:
    os._exit(3)
"""


@pytest.mark.parametrize(
    "action",
    [
        "open('/etc/passwd')",
        "open('/tmp/written', 'w')",
        "socket.socket()",
        "socket.socketpair()",
        "os.fork()",
        "os.execv('/bin/true', ['true'])",
        "os.kill(os.getppid(), 9)",
        "os.unlink('/tmp/none')",
        "os.listdir('/')",
        "os.readlink('/proc/self/exe')",
    ],
)
def test_a_confined_process_opens_and_starts_nothing(action: str) -> None:
    ran = subprocess.run([sys.executable, "-c", _CONFINED.format(action)], check=False)
    assert ran.returncode == 3


def test_memory_is_limited() -> None:
    program = (
        "import os\nfrom internal.documents.confinement import limit_resources\n"
        "limit_resources(1 << 28, 5)\n"
        "try:\n    bytes(1 << 28)\nexcept MemoryError:\n    os._exit(3)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 3
