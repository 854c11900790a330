"""The program between Larkspur and a command: it starts the command and outlives all it started.

Run as a file (`python -I -S launcher.py FD PROGRAM ARGUMENT…`), so it may import nothing but the
standard library. On FD, a socket, it says `started PID`, then at its end `exited CODE` (negative
after a signal), or only `failed ERRNO` when the program cannot be executed. When the other side
of FD is shut, by a stop, a timeout or the death of Larkspur, it ends the command.

On Linux it is the *subreaper* of what it started (prctl(2)): a process that left the group
(setsid, double fork) becomes its child when its parent ends, so none is missed. It can still be
escaped by whoever asks a foreign daemon to run something, and by SIGKILL to this program itself.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

GRACE_SECONDS = 1.0
"""From SIGTERM to SIGKILL."""
PATIENCE_SECONDS = 1.7
"""From SIGTERM to giving up on what cannot be killed (another user's, or stuck in the kernel)."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_UNTRAPPED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE)


def prctl(option: int, value: int) -> None:
    """Set a property of this process; nothing happens where there is no prctl."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def say(link: int, sentence: str) -> None:
    """Tell Larkspur, if it still listens."""
    with contextlib.suppress(OSError):
        os.write(link, f"{sentence}\n".encode())


def start(argv: list[str]) -> int:
    """Execute the program in a session of its own and return its process id.

    Raises:
        OSError: it cannot be executed.
    """
    failure, teller = os.pipe()  # closed by a successful exec
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            for number in _UNTRAPPED:  # Python ignores SIGPIPE, and what we ignore is inherited
                signal.signal(number, signal.SIG_DFL)
            os.unsetenv("LC_CTYPE")  # Python sets it for itself when LANG is C (PEP 538)
            os.execv(argv[0], argv)  # noqa: S606  # no shell is the point
        except OSError as error:
            os.write(teller, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(teller)
    code = os.read(failure, 16)
    os.close(failure)
    if code:
        os.waitpid(child, 0)
        raise OSError(int(code), os.strerror(int(code)))
    return child


class Brood:
    """All living processes that descend from the command."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.exit_code: int | None = None
        self._told: set[int] = set()

    def alive(self) -> bool:
        """Bury the dead; say whether anybody is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                self._told.discard(pid)
                if pid == self.first:
                    self.exit_code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            pass
        try:  # where orphans do not come to us, the group is all that can be seen
            os.killpg(self.first, 0)
        except OSError:
            return False
        return True

    def strike(self, number: int) -> None:
        """Send a signal to the group, and to every child that does not know of it yet."""
        with contextlib.suppress(OSError):
            os.killpg(self.first, number)
            os.killpg(self.first, signal.SIGCONT)  # a stopped process takes no other signal
        for pid in children() - self._told:
            self._told.add(pid)
            with contextlib.suppress(OSError):
                os.kill(pid, number)
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """SIGTERM, a second, SIGKILL, until nobody is left or patience is."""
        began = time.monotonic()
        number: int = signal.SIGTERM
        while self.alive() and (passed := time.monotonic() - began) < PATIENCE_SECONDS:
            if passed > GRACE_SECONDS:
                number = signal.SIGKILL
                self._told.clear()
            self.strike(number)
            time.sleep(0.002 if passed < 0.05 else 0.01)  # noqa: PLR2004  # most die at once


def children() -> set[int]:
    """Return the ids of our direct children: only we can bury them, so no id is anybody else's."""
    try:
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return set()
    return {int(pid) for pid in listed.split()}


def watch(link: int, bell: int, brood: Brood) -> None:
    """Return when the command has exited or Larkspur wants it ended."""
    while brood.alive() and brood.exit_code is None:
        ready, _, _ = select.select([link, bell], [], [])
        if link in ready:
            return
        with contextlib.suppress(BlockingIOError):
            os.read(bell, 512)


def main(link: int, argv: list[str]) -> None:
    """Run one command from its start to the end of its last descendant."""
    os.set_inheritable(link, False)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    bell, ringer = os.pipe()
    os.set_blocking(bell, False)
    os.set_blocking(ringer, False)
    signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        brood = Brood(start(argv))
    except OSError as error:
        say(link, f"failed {error.errno}")
        return
    say(link, f"started {brood.first}")
    with open(os.devnull, "r+b", buffering=0) as nothing:  # noqa: PTH123  # Path adds nothing here
        for stream in range(3):  # the command's, not ours: its pipes must see it close them
            os.dup2(nothing.fileno(), stream)
    watch(link, bell, brood)
    brood.end()
    say(link, f"exited {-signal.SIGKILL if brood.exit_code is None else brood.exit_code}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
