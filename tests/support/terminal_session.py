"""An interactive session in a pseudo-terminal."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.cli_environment import LARKSPUR, CliEnvironment, open_command_line
from tests.support.scripted_model import Script
from tests.support.terminal import TerminalProcess, start_terminal

READY = "/help"


class ReplProcess:
    """A session process, its data folder, and the terminal settings before it."""

    def __init__(self, there: CliEnvironment, tty: TerminalProcess) -> None:
        self.place, self.tty = there, tty
        self.before = tty.modes()

    async def send(self, text: str) -> None:
        self.tty.type(f"{text}\r")
        await self.tty.wait_for(f"> {text}")

    async def exit_restored(self) -> int:
        """Wait for the exit and assert that the terminal was restored."""
        code = await self.tty.wait_exit()
        assert self.tty.modes() == self.before
        raw = bytes(self.tty.raw)
        for on, off in ((b"\x1b[?2004h", b"\x1b[?2004l"), (b"\x1b[?25l", b"\x1b[?25h")):
            assert raw.rfind(on) <= raw.rfind(off), on
        assert b"\x1b[?1049h" not in raw
        assert b"Traceback" not in raw
        return code


@asynccontextmanager
async def open_terminal(
    way: str,
    home: Path,
    environ: dict[str, str],
    script: Script,
    *argv: str,
    size: tuple[int, int] = (80, 24),
) -> AsyncGenerator[ReplProcess]:
    async with (
        open_command_line(way, home, environ, script) as there,
        start_terminal([LARKSPUR, *argv], there.environ, there.folder, size) as tty,
    ):
        repl = ReplProcess(there, tty)
        await tty.wait_until(lambda: READY in tty.screen.text)
        yield repl


def frame_drawn(tty: TerminalProcess) -> "FrameDrawn":
    return FrameDrawn(tty)


class FrameDrawn:
    """True once a frame was drawn after its creation."""

    def __init__(self, tty: TerminalProcess) -> None:
        self.tty, self.seen = tty, len(tty.raw)

    def __call__(self) -> bool:
        return b"\x1b[?2026l" in bytes(self.tty.raw[self.seen :])
