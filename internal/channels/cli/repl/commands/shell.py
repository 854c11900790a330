"""Shell commands that a person runs directly with `!`, with output for the next message."""

import asyncio
import os
import signal
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from contextlib import suppress

_MAX_KEPT = 8_000
"""Characters of the output of a command that the model gets: its end."""
_MAX_KEPT_COMMANDS = 10
_MAX_SHOWN_LINES = 2_000


class ShellRunner:
    """Runs one command at a time. `show` prints lines of its output."""

    def __init__(self, show: Callable[[Sequence[str]], None]) -> None:
        self.command = ""
        """The command that is running."""
        self._show = show
        self._process: asyncio.subprocess.Process | None = None
        self._stops = False
        """True if the command was ended before its process existed."""
        self._kept: list[str] = []

    async def run(self, command: str, folder: str) -> int:
        """Run a command in a folder and return its exit code, negative for a signal."""
        self.command = command
        try:
            return await self._run(command, folder)
        finally:
            self.stop()
            self.command, self._process, self._stops = "", None, False

    def stop(self) -> bool:
        """End the running command and what it started. Return False if none is running."""
        if self._process is None:
            self._stops = bool(self.command)
            return self._stops
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return True

    def take_kept(self) -> list[str]:
        """Return the commands since the last message with their output, and forget them."""
        kept, self._kept = self._kept, []
        return kept

    def keep(self, kept: Sequence[str]) -> None:
        """Keep outputs for the next message after all."""
        self._kept = [*kept, *self._kept]

    async def _run(self, command: str, folder: str) -> int:
        process = self._process = await asyncio.create_subprocess_shell(
            command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # a group of its own, to be ended together
        )
        if self._stops:
            self.stop()
        output = process.stdout
        assert output is not None  # noqa: S101 - it is a pipe
        decoder, rest, shown, tail = getincrementaldecoder("utf-8")("replace"), "", 0, ""
        while piece := await output.read(65_536):
            text = decoder.decode(piece)
            tail = (tail + text)[-_MAX_KEPT - 1 :]
            *lines, rest = (rest + text)[-_MAX_KEPT * 20 :].split("\n")
            self._show(lines[: max(_MAX_SHOWN_LINES - shown, 0)])
            shown += len(lines)
        if rest:
            self._show([rest])
        code = await process.wait()
        if len(tail) > _MAX_KEPT:
            tail = f"[…]{tail[-_MAX_KEPT:]}"
        block = f"<shell>\n$ {command}\n{tail.rstrip()}\n[exit code {code}]\n</shell>"
        self._kept = [*self._kept, block][-_MAX_KEPT_COMMANDS:]
        return code
