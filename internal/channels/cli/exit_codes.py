"""Exit codes and signal handling of the command. Standard library only."""

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import NoReturn, Self

from internal.channels.cli.output import print_error

OK, FAILED, USAGE, CONFIG, DENIED, LIMIT, WAITING = range(7)
INTERRUPTED, BROKEN_PIPE = 128 + signal.SIGINT, 128 + signal.SIGPIPE
STOP_TIMEOUT_SECONDS = 5.0
"""Time within which a run must end after SIGTERM or SIGHUP."""

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""The signals that ask a process to end."""


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


Handler = Callable[[int, FrameType | None], None]


class SignalHandlers(ABC):
    """Handles signals in a block; leaving it restores the earlier handlers.

    The first SIGTERM or SIGHUP sets `code`, the exit code, and starts `STOP_TIMEOUT_SECONDS`, after
    which SIGALRM arrives. A second one exits the process.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self._before: dict[int, Handler | int | None] = {}

    @abstractmethod
    def handlers(self) -> dict[int, Handler]:
        """Return the handlers to install."""

    def __enter__(self) -> Self:
        for number, handler in self.handlers().items():
            # what was ignored at the start (nohup) stays ignored, except SIGINT: shells ignore it
            # for background jobs, so one that arrives was sent on purpose
            if number not in ENDING or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def exit_now(self, code: int) -> NoReturn:
        """End the process now."""
        # not sys.exit: a thread or finalizer that hangs would keep the process alive
        os._exit(code)

    def accept_end(self, number: int) -> int:
        """Set and return the exit code of a signal."""
        if self.code is not None:
            self.exit_now(self.code)
        self.code = 128 + number
        if number in ENDING:
            signal.setitimer(signal.ITIMER_REAL, STOP_TIMEOUT_SECONDS)
        return self.code


class SignalGuard(SignalHandlers):
    """Handles SIGINT, SIGTERM and SIGHUP: the first calls `stop`, the second exits the process.

    `stop` is called in the signal handler, so it must return soon and may itself be interrupted.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers to install."""
        return {
            signal.SIGALRM: self._exit_overdue,
            **dict.fromkeys((signal.SIGINT, *ENDING), self._handle_signal),
        }

    def _handle_signal(self, number: int, _frame: FrameType | None) -> None:
        self.accept_end(number)
        print_error("Stopping; repeat to exit at once.")
        self._stop()

    def _exit_overdue(self, _number: int, _frame: FrameType | None) -> None:
        print_error(
            f"The run did not end within {STOP_TIMEOUT_SECONDS:g} s; its stop request is stored."
        )
        self.exit_now(self.code or FAILED)
