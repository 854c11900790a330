"""How the command ends: its exit codes, and what a signal does. Standard library only."""

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
    """The command ends now. `code` is its exit code, the text a sentence for a person or empty."""

    def __init__(self, code: int, sentence: str = "") -> None:
        super().__init__(sentence)
        self.code = code


def output_failure(error: OSError) -> CliExit:
    """Say how the command ends when standard output cannot be written: quietly on a closed pipe."""
    if isinstance(error, BrokenPipeError):
        return CliExit(BROKEN_PIPE)
    return CliExit(FAILED, f"The output cannot be written: {error.strerror}.")


class SignalGuard:
    """Turns the first signal into a wish to stop, and the second into the end of the process.

    `stop` is called in the signal's handler, so before anything else; it must return soon and may
    itself be interrupted. `code` is the exit code that a signal asked for, None without one.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self.code: int | None = None
        self._stop = stop

    def __enter__(self) -> Self:
        # what was ignored when we started (nohup) stays ignored, but for SIGINT: a shell ignores it
        # for every job in the background, and who sends it there by hand means it
        self._before = {
            number: signal.signal(number, self._signalled)
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

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        if self.code is not None:
            _leave_at_once(self.code)
        self.code = 128 + number
        if number != signal.SIGINT:
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._overdue)
            signal.setitimer(signal.ITIMER_REAL, STOP_TIMEOUT_SECONDS)
        print_error("Stopping; again leaves at once.")
        self._stop()

    def _overdue(self, _number: int, _frame: FrameType | None) -> None:
        print_error(
            f"The run did not end within {STOP_TIMEOUT_SECONDS:g} s; its stop request is stored."
        )
        _leave_at_once(self.code or FAILED)


def _leave_at_once(code: int) -> NoReturn:
    # not sys.exit: a thread or a finaliser that hangs would hold the process
    os._exit(code)
