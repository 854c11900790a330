"""Signals of a session: the first is a wish, the second ends the process, whatever hangs."""

import asyncio
import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from internal.channels.cli.exit_codes import INTERRUPTED, PATIENCE_SECONDS
from internal.channels.cli.repl.terminal_io import TerminalRestorer

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class SessionSignals:
    """Hands signals to the loop: `interrupted` for Ctrl+C, `ended` with the exit code for others.

    After SIGTERM or SIGHUP there are five seconds, then the process ends; the terminal is put back
    first. `suspended` and `resumed` frame the time in which the shell has the terminal.
    """

    def __init__(
        self,
        restorer: TerminalRestorer,
        interrupted: Callable[[], None],
        ended: Callable[[int], None],
        suspended: Callable[[], None],
        resumed: Callable[[], None],
    ) -> None:
        self.code: int | None = None
        self._unheard = False
        self._restorer = restorer
        self._loop = asyncio.get_running_loop()
        self._interrupted = interrupted
        self._ended = ended
        self._others = {signal.SIGTSTP: suspended, signal.SIGCONT: resumed}

    def __enter__(self) -> Self:
        handlers = {
            signal.SIGINT: self._interrupt,
            signal.SIGALRM: self._overdue,
            **dict.fromkeys(self._others, self._other),
            # what was ignored when we started (nohup) stays ignored
            **{
                number: self._end
                for number in _ENDING
                if signal.getsignal(number) is not signal.SIG_IGN
            },
        }
        self._before = {
            number: signal.signal(number, handler) for number, handler in handlers.items()
        }
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

    def leave_at_once(self, code: int) -> None:
        """End the process now. The terminal is put back; what is stored stays stored."""
        self._restorer.restore("\r\n")
        os._exit(code)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.code is not None or self._unheard:  # something holds the loop
            self.leave_at_once(self.code or INTERRUPTED)
        self._unheard = True
        self._loop.call_soon_threadsafe(self._hear)

    def _hear(self) -> None:
        self._unheard = False
        self._interrupted()

    def _end(self, number: int, _frame: FrameType | None) -> None:
        if self.code is not None:
            self.leave_at_once(self.code)
        self.code = 128 + number
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)
        self._loop.call_soon_threadsafe(self._ended, self.code)

    def _overdue(self, _number: int, _frame: FrameType | None) -> None:
        self.leave_at_once(self.code or 1)

    def _other(self, number: int, _frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._others[signal.Signals(number)])
