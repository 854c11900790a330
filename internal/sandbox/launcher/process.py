"""The launcher process: one small process that waits for commands and forks for each.

It saves the start of an interpreter for each command. `program` describes its protocol.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

_PROGRAM = Path(__file__).with_name("program.py")
_MAX_STARTING = 16
"""Commands that are starting at once: their descriptors wait in the socket of the process."""


class Launcher:
    """The launcher process of this process: started at the first command, and again if it has died.

    It ends when it is closed or no longer referred to, and with this process, even on kill -9.
    Commands that are still running are not affected: each has a supervisor of its own.

    Args:
        program: the program of the process.
        timeout_seconds: how long a command may wait until it is started.
    """

    def __init__(self, program: Path = _PROGRAM, timeout_seconds: float = 30.0) -> None:
        self._program = str(program)
        self.timeout_seconds = timeout_seconds
        self.starting = asyncio.Semaphore(_MAX_STARTING)
        """Is held from `launch` to the first report of the command."""
        self._control: socket.socket | None = None
        self._end: Callable[[], object] = lambda: None

    def launch(self, descriptors: Sequence[int]) -> None:
        """Let the process start a command; see `program` for the descriptors.

        Raises:
            OSError: the process cannot be started.
        """
        if self._control is not None:
            with contextlib.suppress(ConnectionError):
                socket.send_fds(self._control, [b"1"], descriptors)
                return
        self.close()  # it has died
        socket.send_fds(self._start(), [b"1"], descriptors)

    def close(self) -> None:
        """End the process. The next command starts another one."""
        self._control = None
        self._end()

    def _start(self) -> socket.socket:
        control, other = socket.socketpair()
        with other:
            try:
                process = subprocess.Popen(  # noqa: S603  # a program of Larkspur
                    (sys.executable, "-I", "-S", self._program, str(other.fileno())),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={},
                    pass_fds=(other.fileno(),),
                    start_new_session=True,
                )
            except BaseException:
                control.close()
                raise
        control.setblocking(False)
        self._control = control
        self._end = weakref.finalize(self, _end, control, process)
        return control


def _end(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    control.close()
    process.kill()
    process.wait()
