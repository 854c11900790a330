"""Start times of real processes."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from internal.config.process_start import ask_ps, find_start


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        yield started
        started.kill()


def test_start_is_known_until_the_process_ends(child: subprocess.Popen[bytes]) -> None:
    start = find_start(child.pid)
    assert start
    assert find_start(child.pid) == start
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert find_start(child.pid) == "", "it ended, though its parent has not collected it"
    child.wait()
    assert find_start(child.pid) == ""
    assert find_start(10**30) == ""


@pytest.mark.needs("ps")
def test_system_without_proc_is_asked_with_ps(child: subprocess.Popen[bytes]) -> None:
    start = ask_ps(child.pid)
    assert start
    assert start[-4:].isdecimal(), "a date"
    assert ask_ps(child.pid) == start
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert ask_ps(child.pid) == ""
    child.wait()
    assert ask_ps(child.pid) is None
