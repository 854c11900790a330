"""The program between Larkspur and a command: starts the command, ends all processes it started.

It is run as a file (`python -I -S launcher.py FD PROGRAM ARGUMENT…`), so it may import nothing but
the standard library. On the socket FD it writes `started PID` before the program runs, then at the
end `exited CODE` (negative after a signal), or `failed ERRNO` when the program cannot be executed.
It ends the command when the other end of FD is shut down: on a stop, a timeout or the death of
Larkspur.

A command is confined if the first argument is `FD,RULESET,FILTER[,GROUP…]`: a ruleset of Landlock,
a file with a filter of system calls, and the files of control groups that take processes.

On Linux it is the *subreaper* of its descendants (prctl(2)): a process that left the group (setsid,
double fork) becomes its child when its parent ends, so none is missed. A command escapes only by
asking a foreign daemon to run something, and when this program itself is killed with SIGKILL.
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
TERMINATION_TIMEOUT_SECONDS = 1.7
"""From SIGTERM until processes that cannot be killed are abandoned: another user's, or stuck."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_CAPABILITIES = 64
_LANDLOCK_RESTRICT_SELF = 446
_INSTRUCTION_BYTES = 8
_RESET_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE)


def prctl(option: int, value: int) -> None:
    """Set a property of this process. Does nothing where there is no prctl."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def report(link: int, line: str) -> None:
    """Write a line to Larkspur. Does nothing when the other end is closed."""
    with contextlib.suppress(OSError):
        os.write(link, f"{line}\n".encode())


class Filter(ctypes.Structure):
    """A program of the kernel: struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def confine(ruleset: int, filter_file: int, groups: list[int]) -> None:
    """Join control groups, give up all rights of root, and restrict files and system calls.

    Raises:
        OSError: a part of it is not possible.
    """
    for group in groups:
        os.write(group, b"0")
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(_CAPABILITIES):  # without the right to do so there is none to give up
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    program = os.pread(filter_file, 65_536, 0)
    calls = Filter(len(program) // _INSTRUCTION_BYTES, program)
    if (
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        or libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0)
        or libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(calls), 0, 0)
    ):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def start(link: int, argv: list[str], confinement: list[int]) -> int:
    """Execute the program in a new session and return its process id, which is reported first.

    So Larkspur knows the group of a program that kills this process at once.

    Args:
        link: where to report.
        argv: the program, and its arguments.
        confinement: the descriptors for `confine`, or none.

    Raises:
        OSError: it cannot be executed.
    """
    errno_reader, errno_writer = os.pipe()  # closed by a successful exec
    gate, gate_writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(gate_writer)
            if not os.read(gate, 1):
                os._exit(127)  # this process has been killed before it could report
            os.setsid()
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            for number in _RESET_SIGNALS:  # ignored signals are inherited; Python ignores SIGPIPE
                signal.signal(number, signal.SIG_DFL)
            if confinement:
                confine(confinement[0], confinement[1], confinement[2:])
                for descriptor in confinement:
                    os.close(descriptor)
            os.unsetenv("LC_CTYPE")  # set by Python for itself when LANG is C (PEP 538)
            os.execv(argv[0], argv)  # noqa: S606  # without a shell on purpose
        except OSError as error:
            os.write(errno_writer, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(errno_writer)
    os.close(gate)
    report(link, f"started {child}")
    os.write(gate_writer, b"1")
    os.close(gate_writer)
    code = os.read(errno_reader, 16)
    os.close(errno_reader)
    if code:
        os.waitpid(child, 0)
        raise OSError(int(code), os.strerror(int(code)))
    return child


class ProcessTree:
    """The living processes that descend from the command."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.exit_code: int | None = None
        self._signalled: set[int] = set()

    def reap(self) -> bool:
        """Collect the processes that have ended. Return whether any process is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                self._signalled.discard(pid)
                if pid == self.first:
                    self.exit_code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            pass
        try:  # without a subreaper orphans are not our children: only the group can be checked
            os.killpg(self.first, 0)
        except OSError:
            return False
        return True

    def signal(self, number: int) -> None:
        """Send a signal to the group, and to every child that did not get one yet."""
        with contextlib.suppress(OSError):
            os.killpg(self.first, number)
            os.killpg(self.first, signal.SIGCONT)  # a stopped process handles no other signal
        for pid in children() - self._signalled:
            self._signalled.add(pid)
            with contextlib.suppress(OSError):
                os.kill(pid, number)
                os.kill(pid, signal.SIGCONT)

    def terminate(self) -> None:
        """Send SIGTERM, after the grace period SIGKILL, until no process is left or the timeout."""
        began = time.monotonic()
        number: int = signal.SIGTERM
        while self.reap() and (passed := time.monotonic() - began) < TERMINATION_TIMEOUT_SECONDS:
            if passed > GRACE_SECONDS:
                number = signal.SIGKILL
                self._signalled.clear()
            self.signal(number)
            time.sleep(0.002 if passed < 0.05 else 0.01)  # noqa: PLR2004  # most end at once


def children() -> set[int]:
    """Return the ids of the direct children. Only this process reaps them: no id is reused."""
    try:
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return set()
    return {int(pid) for pid in listed.split()}


def wait(link: int, child_signals: int, processes: ProcessTree) -> None:
    """Return when the command has exited or Larkspur shut down its end of the link."""
    while processes.reap() and processes.exit_code is None:
        ready, _, _ = select.select([link, child_signals], [], [])
        if link in ready:
            return
        with contextlib.suppress(BlockingIOError):
            os.read(child_signals, 512)


def main(link: int, confinement: list[int], argv: list[str]) -> None:
    """Run one command from its start to the end of its last descendant."""
    os.set_inheritable(link, False)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    child_signals, wakeup = os.pipe()
    os.set_blocking(child_signals, False)
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        processes = ProcessTree(start(link, argv, confinement))
    except OSError as error:
        report(link, f"failed {error.errno}")
        return
    with open(os.devnull, "r+b", buffering=0) as null:  # noqa: PTH123  # Path adds nothing here
        for stream in range(3):  # only the command may hold its pipes open
            os.dup2(null.fileno(), stream)
    wait(link, child_signals, processes)
    processes.terminate()
    code = processes.exit_code
    report(link, f"exited {-signal.SIGKILL if code is None else code}")


if __name__ == "__main__":
    own, *others = map(int, sys.argv[1].split(","))
    main(own, others, sys.argv[2:])
