"""Signal handling of a session: the first signal is a request, the second ends the process."""

import asyncio
import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from internal.channels.cli.exit_codes import INTERRUPTED, STOP_TIMEOUT_SECONDS
from internal.channels.cli.repl.terminal_io import TerminalRestorer

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class SessionSignals:
    """Forwards signals to the loop: `interrupted` for SIGINT, `ended` with an exit code for others.

    Five seconds after SIGTERM or SIGHUP the terminal is restored and the process ends. `suspended`
    is called on SIGTSTP, `resumed` on SIGCONT.
    """

    def __init__(
        self,
        restorer: TerminalRestorer,
        *,
        interrupted: Callable[[], None],
        ended: Callable[[int], None],
        suspended: Callable[[], None],
        resumed: Callable[[], None],
    ) -> None:
        self.code: int | None = None
        self._pending = False
        self._restorer = restorer
        self._loop = asyncio.get_running_loop()
        self._interrupted = interrupted
        self._ended = ended
        self._others = {signal.SIGTSTP: suspended, signal.SIGCONT: resumed}

    def __enter__(self) -> Self:
        handlers = {
            signal.SIGINT: self._interrupt,
            signal.SIGALRM: self._on_timeout,
            **dict.fromkeys(self._others, self._other),
            # signals that were ignored at the start (nohup) stay ignored
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

    def exit_now(self, code: int) -> None:
        """Restore the terminal and end the process now."""
        self._restorer.restore("\r\n")
        os._exit(code)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.code is not None or self._pending:  # the loop is blocked
            self.exit_now(self.code or INTERRUPTED)
        self._pending = True
        self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._pending = False
        self._interrupted()

    def _end(self, number: int, _frame: FrameType | None) -> None:
        if self.code is not None:
            self.exit_now(self.code)
        self.code = 128 + number
        signal.setitimer(signal.ITIMER_REAL, STOP_TIMEOUT_SECONDS)
        self._loop.call_soon_threadsafe(self._ended, self.code)

    def _on_timeout(self, _number: int, _frame: FrameType | None) -> None:
        self.exit_now(self.code or 1)

    def _other(self, number: int, _frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._others[signal.Signals(number)])
