"""Restrictions of a confined process."""

import subprocess
import sys

import pytest

_CONFINED = """\
import _thread, ctypes, os, socket, sys
from internal.documents.confinement import deny_system_calls, limit_resources
limit_resources(512 << 20, 5, may_start_threads={threads})
def wait():
    while True:
        pass
assert deny_system_calls(may_start_threads={threads})
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
    assert _exit_code(action, threads=False) == 3


@pytest.mark.parametrize("action", ["os.fork()", "open('/etc/passwd')"])
def test_a_process_that_may_start_threads_starts_no_process(action: str) -> None:
    assert _exit_code(action, threads=True) == 3
    # of _thread, which is built in: no file can be opened for another module
    start = "_thread.start_new_thread(os._exit, (4,)); wait()"
    assert _exit_code(start, threads=True) == 4


def _exit_code(action: str, *, threads: bool) -> int:
    program = _CONFINED.format(action, threads=threads)
    return subprocess.run([sys.executable, "-c", program], check=False).returncode


def test_memory_is_limited() -> None:
    program = (
        "import os\nfrom internal.documents.confinement import limit_resources\n"
        "limit_resources(1 << 28, 5, may_start_threads=False)\n"
        "try:\n    bytes(1 << 28)\nexcept MemoryError:\n    os._exit(3)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 3
