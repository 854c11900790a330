"""Runs a process on a pseudo terminal and emulates the screen."""

import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyte

TIMEOUT_SECONDS = 45.0


class ScrollbackScreen(pyte.HistoryScreen):
    """A screen with a scrollback buffer. It loses its top rows when it shrinks."""

    def __init__(self, columns: int, lines: int) -> None:
        self.synchronised: list[int] = []
        super().__init__(columns, lines, history=100_000, ratio=0.5)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        lines, columns = lines or self.lines, columns or self.columns
        self._wrap(columns)
        while self.cursor.y >= lines:
            self.history.top.append(self.buffer[0])
            for y in range(self.lines - 1):
                self.buffer[y] = self.buffer[y + 1]
            self.buffer.pop(self.lines - 1, None)
            self.cursor.y -= 1
        for y in range(lines, self.lines):
            self.buffer.pop(y, None)
        self.lines, self.columns = lines, columns
        self.margins = None
        self.dirty.update(range(lines))
        self.cursor.x = min(self.cursor.x, columns - 1)

    def _wrap(self, columns: int) -> None:
        """Wrap the rows that a narrower window cannot show, as most terminals do."""
        wrapped: list[Any] = []
        at = (0, 0)
        for y in range(self.lines):
            line = self.buffer[y]
            width = max((x + 1 for x in line if line[x].data != " "), default=0)
            if y == self.cursor.y:
                at = (len(wrapped) + self.cursor.x // columns, self.cursor.x % columns)
                width = max(width, self.cursor.x + 1)
            for start in range(0, max(width, 1), columns):
                part = type(line)(line.default)
                part.update(
                    {x - start: line[x] for x in list(line) if start <= x < start + columns}
                )
                wrapped.append(part)
        while len(wrapped) > self.lines and not self.row(wrapped[-1]) and at[0] < len(wrapped) - 1:
            wrapped.pop()
        hidden = max(len(wrapped) - self.lines, 0)
        self.history.top.extend(wrapped[:hidden])
        self.buffer.clear()
        self.buffer.update(enumerate(wrapped[hidden:]))
        self.cursor.y, self.cursor.x = max(at[0] - hidden, 0), at[1]

    def row(self, line: Any) -> str:
        wide = max(line.keys(), default=-1) + 1
        return "".join(line[x].data for x in range(wide)).rstrip()

    @property
    def scrolled(self) -> list[str]:
        """The rows of the scrollback buffer."""
        return [self.row(line) for line in self.history.top]

    @property
    def rows(self) -> list[str]:
        """The visible rows."""
        return [self.row(self.buffer[y]) for y in range(self.lines)]

    @property
    def text(self) -> str:
        """The scrollback buffer and the screen."""
        return "\n".join([*self.scrolled, *self.rows]).rstrip()


class TerminalProcess:
    """A process with a terminal of its own."""

    def __init__(self, process: asyncio.subprocess.Process, master: int, slave: int) -> None:
        self.process = process
        self.master, self.slave = master, slave
        self.screen = ScrollbackScreen(80, 24)
        self.raw = bytearray()
        self._open = True
        self._stream = pyte.ByteStream(self.screen)
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(master, self._read)

    def type(self, text: str) -> None:
        """Press keys, waiting while the process does not read them."""
        data = memoryview(text.encode())  # its rest is not copied for each part
        while data:
            select.select([], [self.master], [])
            data = data[os.write(self.master, data[:1024]) :]

    async def type_in_thread(self, text: str) -> None:
        """Press many keys without blocking the event loop."""
        await asyncio.to_thread(self.type, text)

    def resize(self, columns: int, rows: int) -> None:
        """Resize the window."""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.killpg(self.process.pid, signal.SIGWINCH)

    def modes(self) -> list[Any]:
        """Return the terminal settings."""
        return termios.tcgetattr(self.slave)

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds after a change of the screen."""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError("the condition never held:\n" + self.screen.text) from None

    async def wait_for(self, *texts: str) -> None:
        """Wait until all texts are on the screen or in the scrollback buffer."""
        await self.wait_until(lambda: all(text in self.screen.text for text in texts))

    async def wait_exit(self) -> int:
        """Wait for the end of the process and return its exit code."""
        code = await asyncio.wait_for(self.process.wait(), TIMEOUT_SECONDS)
        self._read()
        return code

    def hang_up(self) -> None:
        """Close the terminal, like closing its window."""
        self._loop.remove_reader(self.master)
        os.close(self.slave)
        os.close(self.master)
        self._open = False

    def close(self) -> None:
        if self._open:
            self.hang_up()

    def _read(self) -> None:
        try:
            data = os.read(self.master, 65_536)
        except (BlockingIOError, OSError):
            return
        self.raw += data
        self._stream.feed(data)
        self._changed.set()


@asynccontextmanager
async def start_terminal(
    command: Sequence[str | Path],
    environ: dict[str, str],
    folder: Path,
    size: tuple[int, int] = (80, 24),
) -> AsyncGenerator[TerminalProcess]:
    """Start a command in a new terminal and kill it at the end."""
    master, slave = pty.openpty()
    columns, rows = size
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.set_blocking(master, False)
    process = await asyncio.create_subprocess_exec(
        *command,
        env={"TERM": "xterm-256color", **environ},
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    started = TerminalProcess(process, master, slave)
    started.screen.resize(rows, columns)
    try:
        yield started
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        started.close()


def _take_terminal() -> None:
    # as the controlling terminal of the session, so that Ctrl+C and fg work
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
