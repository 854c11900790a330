"""The launcher as a process: its reports, and how it ends a command."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from internal.sandbox import launcher

LAUNCHER = str(Path(launcher.__file__))


class Launched:
    """A launcher process and the other end of its link."""

    def __init__(self, environ: dict[str, str], *argv: str) -> None:
        self.link, launcher_link = socket.socketpair()
        self.link.settimeout(30)
        self.process = subprocess.Popen(
            [sys.executable, LAUNCHER, str(launcher_link.fileno()), *argv],
            pass_fds=(launcher_link.fileno(),),
            env=environ,
            start_new_session=True,
        )
        launcher_link.close()

    def reports(self) -> str:
        """Return all its reports, after it has ended."""
        chunks = []
        with contextlib.suppress(ConnectionError):
            while chunk := self.link.recv(64):
                chunks.append(chunk)
        self.link.close()
        assert self.process.wait(30) == 0
        return b"".join(chunks).decode()


def test_start_and_exit_are_reported(environ: dict[str, str]) -> None:
    lines = Launched(environ, "/bin/sh", "-c", "exit 7").reports().splitlines()
    assert [line.split()[0] for line in lines] == ["started", "exited"]
    assert lines[1] == "exited 7"


def test_a_failed_exec_is_reported(environ: dict[str, str]) -> None:
    assert Launched(environ, "/dev/null").reports().splitlines()[1:] == ["failed 13"]


def test_a_command_that_kills_the_launcher_at_once_is_known(environ: dict[str, str]) -> None:
    launched = Launched(environ, "/bin/sh", "-c", "kill -9 $PPID")
    assert launched.link.recv(64).startswith(b"started ")
    assert launched.process.wait(30) == -signal.SIGKILL
    launched.link.close()


@pytest.mark.parametrize("trap", ["", "trap '' TERM;"])
def test_shutting_down_the_link_ends_the_command(environ: dict[str, str], trap: str) -> None:
    launched = Launched(environ, "/bin/bash", "-c", f"{trap} sleep 600 & {trap} wait")
    started = launched.link.recv(64).decode().split()
    launched.link.shutdown(socket.SHUT_WR)
    assert launched.reports() in {"exited -15\n", "exited -9\n"}
    with pytest.raises(ProcessLookupError):
        os.kill(int(started[1]), 0)
