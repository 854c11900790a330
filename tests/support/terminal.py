"""A seat at a terminal: a process on a pseudo terminal, and a screen that shows what it draws."""

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

PATIENCE_SECONDS = 45.0


class Glass(pyte.HistoryScreen):
    """A screen that keeps what scrolls off, and that shrinks as terminals do: from the top."""

    def __init__(self, columns: int, lines: int) -> None:
        self.synchronised: list[int] = []
        super().__init__(columns, lines, history=100_000, ratio=0.5)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        lines, columns = lines or self.lines, columns or self.columns
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

    def row(self, line: Any) -> str:
        wide = max(line.keys(), default=-1) + 1
        return "".join(line[x].data for x in range(wide)).rstrip()

    @property
    def scrolled(self) -> list[str]:
        """What went off the top."""
        return [self.row(line) for line in self.history.top]

    @property
    def rows(self) -> list[str]:
        """What is on the screen."""
        return [self.row(self.buffer[y]) for y in range(self.lines)]

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join([*self.scrolled, *self.rows]).rstrip()


class Seat:
    """One process at one terminal."""

    def __init__(self, process: asyncio.subprocess.Process, master: int, slave: int) -> None:
        self.process = process
        self.master, self.slave = master, slave
        self.glass = Glass(80, 24)
        self.raw = bytearray()
        self._open = True
        self._stream = pyte.ByteStream(self.glass)
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(master, self._read)

    def type(self, text: str) -> None:
        """Press keys; what the process does not take yet waits."""
        data = text.encode()
        while data:
            select.select([], [self.master], [])
            data = data[os.write(self.master, data[:1024]) :]

    async def pour(self, text: str) -> None:
        """Press very many keys, while the screen goes on."""
        await asyncio.to_thread(self.type, text)

    def resize(self, columns: int, rows: int) -> None:
        """Change the window."""
        self.glass.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.killpg(self.process.pid, signal.SIGWINCH)

    def modes(self) -> list[Any]:
        """Return how the terminal is set."""
        return termios.tcgetattr(self.slave)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, looking anew whenever the screen has changed."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError("it never came to be:\n" + self.glass.text) from None

    async def sees(self, *texts: str) -> None:
        """Wait until all texts are on the screen or above it."""
        await self.until(lambda: all(text in self.glass.text for text in texts))

    async def end(self) -> int:
        """Wait for the process's end."""
        code = await asyncio.wait_for(self.process.wait(), PATIENCE_SECONDS)
        self._read()
        return code

    def hang_up(self) -> None:
        """Close the terminal, as a window that is closed does."""
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
async def seat(
    command: Sequence[str | Path],
    environ: dict[str, str],
    folder: Path,
    size: tuple[int, int] = (80, 24),
) -> AsyncGenerator[Seat]:
    """Start a command at a terminal of its own; what is left of it is killed."""
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
    there = Seat(process, master, slave)
    there.glass.resize(rows, columns)
    try:
        yield there
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        there.close()


def _take_terminal() -> None:
    # the pseudo terminal becomes the session's own: Ctrl+C and fg work as they do for people
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
