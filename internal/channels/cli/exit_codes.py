"""Exit codes and signal handling of the command. Standard library only."""

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import NoReturn, Self

from internal.channels.cli.output import print_error

OK, FAILED, USAGE, CONFIG, DENIED, LIMIT, WAITING = range(7)
INTERRUPTED, BROKEN_PIPE = 128 + signal.SIGINT, 128 + signal.SIGPIPE
STOP_TIMEOUT_SECONDS = 5.0
"""How long a run may take to end after SIGTERM or SIGHUP."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CliExit(Exception):
    """Ends the command with exit code `code`. The message, if any, is printed for a person."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message)
        self.code = code


def output_failure(error: OSError) -> CliExit:
    """Return the exit for a failed write to standard output.

    A closed pipe ends the command without a message.
    """
    if isinstance(error, BrokenPipeError):
        return CliExit(BROKEN_PIPE)
    return CliExit(FAILED, f"The output cannot be written: {error.strerror}.")


class SignalGuard:
    """Handles SIGINT, SIGTERM and SIGHUP: the first calls `stop`, the second exits the process.

    `stop` is called in the signal handler, so it must return soon and may itself be interrupted.
    `code` is the exit code of the received signal, None without one.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self.code: int | None = None
        self._stop = stop

    def __enter__(self) -> Self:
        # a signal that is ignored at the start (nohup) stays ignored, except SIGINT: shells ignore
        # it for background jobs, so one that arrives was sent on purpose
        self._before = {
            number: signal.signal(number, self._handle_signal)
            for number in _SIGNALS
            if number is signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN
        }
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.code is not None:
            _exit_now(self.code)
        self.code = 128 + number
        if number != signal.SIGINT:
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._exit_overdue)
            signal.setitimer(signal.ITIMER_REAL, STOP_TIMEOUT_SECONDS)
        print_error("Stopping; repeat to exit at once.")
        self._stop()

    def _exit_overdue(self, _number: int, _frame: FrameType | None) -> None:
        print_error(
            f"The run did not end within {STOP_TIMEOUT_SECONDS:g} s; its stop request is stored."
        )
        _exit_now(self.code or FAILED)


def _exit_now(code: int) -> NoReturn:
    # not sys.exit: a thread or finalizer that hangs would keep the process alive
    os._exit(code)
