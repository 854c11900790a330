"""The launcher as a process: its reports, and how it ends commands."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from internal.sandbox.launcher import program

PROGRAM = str(Path(program.__file__))


class Launcher:
    """A launcher process and the other end of its socket."""

    def __init__(self) -> None:
        self.control, other = socket.socketpair()
        with other:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", PROGRAM, str(other.fileno())],
                pass_fds=(other.fileno(),),
                env={},
            )

    def start(self, *argv: str, folder: str = "/") -> "Launched":
        launched = Launched()
        with launched.launcher_link as link, Path(os.devnull).open("r+b", buffering=0) as null:
            descriptors = [link.fileno(), *[null.fileno()] * 3]
            socket.send_fds(self.control, [b"1"], descriptors)
        text = b"\0".join(os.fsencode(each) for each in (folder, *argv, "PATH=/usr/bin:/bin"))
        for number in (len(text), len(argv)):
            launched.link.send(number.to_bytes(8, "little"))
        launched.link.sendall(text)
        return launched


class Launched:
    """A command, by the link to its supervisor."""

    def __init__(self) -> None:
        self.link, self.launcher_link = socket.socketpair()
        self.link.settimeout(30)

    def reports(self) -> str:
        """Return all reports to the end of the supervisor."""
        chunks = []
        with self.link, contextlib.suppress(ConnectionError):
            while chunk := self.link.recv(64):
                chunks.append(chunk)
        return b"".join(chunks).decode()


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    started = Launcher()
    yield started
    started.control.close()
    assert started.process.wait(30) == 0


def test_start_and_exit_are_reported(launcher: Launcher) -> None:
    lines = launcher.start("/bin/sh", "-c", "exit 7").reports().splitlines()
    assert [line.split()[0] for line in lines] == ["started", "exited"]
    assert lines[1] == "exited 7"


def test_a_failed_exec_is_reported(launcher: Launcher) -> None:
    assert launcher.start("/dev/null").reports().splitlines()[1:] == ["failed 13"]
    assert launcher.start("/bin/sh", folder="/gone").reports().splitlines()[1:] == ["failed 2"]


def test_commands_do_not_wait_for_each_other(launcher: Launcher) -> None:
    first = launcher.start("/bin/sleep", "600")
    assert first.link.recv(64).startswith(b"started ")
    assert launcher.start("/bin/true").reports().endswith("exited 0\n")
    first.link.shutdown(socket.SHUT_WR)
    assert first.reports() == "exited -15\n"


def test_a_command_that_kills_its_supervisor_at_once_is_known(launcher: Launcher) -> None:
    killing = launcher.start("/bin/sh", "-c", "kill -9 $PPID")
    assert killing.reports().startswith("started ")
    assert launcher.start("/bin/true").reports().endswith("exited 0\n")


@pytest.mark.parametrize("trap", ["", "trap '' TERM;"])
def test_shutting_down_the_link_ends_the_command(launcher: Launcher, trap: str) -> None:
    launched = launcher.start("/bin/bash", "-c", f"{trap} sleep 600 & {trap} wait")
    started = launched.link.recv(64).decode().split()
    launched.link.shutdown(socket.SHUT_WR)
    assert launched.reports() in {"exited -15\n", "exited -9\n"}
    with pytest.raises(ProcessLookupError):
        os.kill(int(started[1]), 0)


def test_a_command_that_is_no_longer_wanted_is_not_started(launcher: Launcher) -> None:
    launched = Launched()
    with launched.launcher_link as link:
        socket.send_fds(launcher.control, [b"1"], [link.fileno()] * 4)
    launched.link.shutdown(socket.SHUT_WR)
    assert launched.reports() == ""


def test_the_launcher_ends_after_the_process_that_started_it(launcher: Launcher) -> None:
    running = launcher.start("/bin/sleep", "600")
    assert running.link.recv(64).startswith(b"started ")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        launcher.process.send_signal(number)  # of a service manager: its commands end first
    launcher.control.close()
    assert launcher.process.wait(30) == 0
    running.link.shutdown(socket.SHUT_WR)
    assert running.reports() == "exited -15\n"
