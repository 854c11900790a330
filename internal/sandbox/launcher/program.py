"""The launcher: the program that starts commands, and ends all processes that they started.

It is run as a file (`python -I -S program.py FD`), so it may import nothing but the standard
library. For each byte on the socket FD it receives the descriptors of one command and forks: the
child supervises that command. It has no environment and no other descriptor of Larkspur, does not
learn which commands run, and ends when the other end of FD is closed.

The descriptors are: a link, the standard streams, and, for a command that is confined, a ruleset of
Landlock, a file with a filter of system calls, and the files of control groups that take processes.
On the link a supervisor reads a request (see `read_request`). It writes `started PID SUPERVISOR`
before the program runs, then at the end `exited CODE` (negative after a signal), or `failed ERRNO`
when the program cannot be executed. It ends the command when the other end of the link is shut
down: on a stop, a timeout or the death of Larkspur.

On Linux a supervisor is the *subreaper* of its descendants (prctl(2)): a process that left the
group (setsid, double fork) becomes its child when its parent ends, so none is missed. A command
escapes only by asking a foreign daemon to run something, and when its supervisor is killed with
SIGKILL.
"""

import contextlib
import ctypes
import gc
import os
import select
import signal
import socket
import sys
import time
from typing import NamedTuple

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
_MAX_DESCRIPTORS = 16
_CHUNK_BYTES = 65_536
_IGNORED_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_RESET_SIGNALS = (*_IGNORED_SIGNALS, signal.SIGQUIT, signal.SIGPIPE, signal.SIGCHLD)
_LIBC = ctypes.CDLL(None, use_errno=True)


class Request(NamedTuple):
    """A command: its folder, the program with its arguments, and its variables."""

    folder: bytes
    argv: list[bytes]
    environment: dict[bytes, bytes]


def read_request(link: int) -> Request:
    """Read the request of a command: two numbers of eight bytes, then so many bytes of text.

    The first number is the length of the text, the second how many arguments there are. The text is
    the folder, the arguments and the variables (NAME=VALUE), with a NUL between them.

    Raises:
        EOFError: the other end has been closed.
    """
    length, arguments = (int.from_bytes(read_exactly(link, 8), "little") for _ in range(2))
    folder, *rest = read_exactly(link, length).split(b"\0")
    pairs = (each.partition(b"=") for each in rest[arguments:])
    return Request(folder, rest[:arguments], {name: value for name, _, value in pairs})


def read_exactly(file: int, length: int) -> bytes:
    """Read so many bytes.

    Raises:
        EOFError: the file ended before.
    """
    content = bytearray()
    while len(content) < length:
        chunk = os.read(file, min(length - len(content), _CHUNK_BYTES))
        if not chunk:
            raise EOFError
        content += chunk
    return bytes(content)


def prctl(option: int, value: int) -> None:
    """Set a property of this process. Does nothing where there is no prctl."""
    if sys.platform == "linux":
        _LIBC.prctl(option, value, 0, 0, 0)


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
    for capability in range(_CAPABILITIES):  # without the right to do so there is none to give up
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    program = os.pread(filter_file, 65_536, 0)
    calls = Filter(len(program) // _INSTRUCTION_BYTES, program)
    if (
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        or _LIBC.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0)
        or _LIBC.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(calls), 0, 0)
    ):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def start(link: int, request: Request, streams: list[int], confinement: list[int]) -> int:
    """Execute the program in a new session and return its process id, which is reported first.

    Larkspur therefore knows the process group even of a program that kills this process at once.

    Args:
        link: the descriptor for reports.
        request: the command.
        streams: the descriptors for standard input, output and error.
        confinement: the descriptors for `confine`, or none.

    Raises:
        OSError: it cannot be executed, or nobody reads the reports.
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
            os.chdir(request.folder)
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
            if confinement:
                confine(confinement[0], confinement[1], confinement[2:])
            os.execve(request.argv[0], request.argv, request.environment)  # noqa: S606  # no shell on purpose
        except OSError as error:
            os.write(errno_writer, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(errno_writer)
    os.close(gate)
    for descriptor in (*streams, *confinement):  # only the command may hold its pipes open
        os.close(descriptor)
    os.write(link, f"started {child} {os.getpid()}\n".encode())
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
        file = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY)
    except OSError:
        return set()
    listed = bytearray()
    try:
        while chunk := os.read(file, _CHUNK_BYTES):
            listed += chunk
    finally:
        os.close(file)
    return {int(pid) for pid in listed.split()}


def wait(link: int, child_signals: int, processes: ProcessTree) -> None:
    """Return when the command has exited or Larkspur shut down its end of the link."""
    while processes.reap() and processes.exit_code is None:
        ready, _, _ = select.select([link, child_signals], [], [])
        if link in ready:
            return
        with contextlib.suppress(BlockingIOError):
            os.read(child_signals, 512)


def supervise(link: int, streams: list[int], confinement: list[int]) -> None:
    """Run one command from its start to the end of its last descendant."""
    os.setsid()
    child_signals, wakeup = os.pipe()
    os.set_blocking(child_signals, False)
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        processes = ProcessTree(start(link, read_request(link), streams, confinement))
    except OSError as error:
        report(link, f"failed {error.errno}")
        return
    wait(link, child_signals, processes)
    processes.terminate()
    code = processes.exit_code
    report(link, f"exited {-signal.SIGKILL if code is None else code}")


def fork_supervisor(control: socket.socket, descriptors: list[int]) -> None:
    """Start a process for a command, which ends with it."""
    link, *others = descriptors
    try:
        pid = os.fork()
    except OSError as error:
        report(link, f"failed {error.errno}")
        return
    if pid == 0:
        try:
            control.close()
            supervise(link, others[:3], others[3:])
        except EOFError:  # the command is not wanted any more
            pass
        finally:
            os._exit(0)


def reap_supervisors(*_: object) -> None:
    """Collect the supervisors that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main(control: socket.socket) -> None:
    """Start a supervisor for each command, until Larkspur closes its end of the socket."""
    for number in _IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, reap_supervisors)  # interrupts the wait for a command
    gc.disable()
    gc.freeze()  # so that supervisors share the memory of loaded modules
    while True:
        byte, descriptors, _, _ = socket.recv_fds(control, 1, _MAX_DESCRIPTORS)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        if descriptors:
            fork_supervisor(control, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        if not byte:
            return


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
