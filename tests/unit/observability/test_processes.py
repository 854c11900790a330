"""Processes of the machine: real ones."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from internal.agent.ports.runtime import ProcessIdentity
from internal.config.process_start import find_start
from internal.observability.processes import SystemProcesses

PROCESSES = SystemProcesses()
HERE = PROCESSES.current("terminal-1")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        yield started
        started.kill()


def test_stopped_process_is_alive_until_it_ends(child: subprocess.Popen[bytes]) -> None:
    other = HERE._replace(pid=child.pid, start=find_start(child.pid) or "")
    os.kill(child.pid, signal.SIGSTOP)
    assert PROCESSES.is_alive(other)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert PROCESSES.is_alive(other) is False, "it ended, though its parent has not collected it"
    child.wait()
    assert PROCESSES.is_alive(other) is False


def test_process_with_the_pid_of_another_is_not_that_process() -> None:
    assert PROCESSES.is_alive(HERE)
    assert PROCESSES.is_alive(HERE._replace(start="1")) is False
    assert PROCESSES.is_alive(HERE._replace(start="")) is False


def test_processes_before_a_restart_of_the_machine_have_ended() -> None:
    assert PROCESSES.is_alive(HERE._replace(boot="before")) is False


@pytest.mark.parametrize(
    "other",
    [
        HERE._replace(boot="other", host="other"),
        HERE._replace(boot=""),
        HERE._replace(namespace="1"),
    ],
    ids=["other machine", "unknown boot", "other container"],
)
def test_process_that_cannot_be_checked(other: ProcessIdentity) -> None:
    assert PROCESSES.is_alive(other) is None
