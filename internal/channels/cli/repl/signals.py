"""Signal handling of a session: the first signal is a request, the second ends the process."""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from internal.channels.cli.exit_codes import ENDING, FAILED, INTERRUPTED, Handler, SignalHandlers
from internal.channels.cli.repl.terminal_io import TerminalRestorer


class SessionSignals(SignalHandlers):
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
        super().__init__()
        self._pending = False
        self._restorer = restorer
        self._loop = asyncio.get_running_loop()
        self._interrupted = interrupted
        self._ended = ended
        self._others = {signal.SIGTSTP: suspended, signal.SIGCONT: resumed}

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers to install."""
        return {
            signal.SIGINT: self._interrupt,
            signal.SIGALRM: self._on_timeout,
            **dict.fromkeys(self._others, self._other),
            **dict.fromkeys(ENDING, self._end),
        }

    def exit_now(self, code: int) -> NoReturn:
        """Restore the terminal and end the process now."""
        self._restorer.restore("\r\n")
        super().exit_now(code)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.code is not None or self._pending:  # the loop is blocked
            self.exit_now(self.code or INTERRUPTED)
        self._pending = True
        self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._pending = False
        self._interrupted()

    def _end(self, number: int, _frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._ended, self.accept_end(number))

    def _on_timeout(self, _number: int, _frame: FrameType | None) -> None:
        self.exit_now(self.code or FAILED)

    def _other(self, number: int, _frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._others[signal.Signals(number)])
