"""Shell commands that a person runs directly with `!`, with output for the next message."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress

from internal.channels.cli.records import RunCommand
from internal.terminal_screen.screen import OutputScreen
from internal.text_encodings.stream import StreamDecoder

_MAX_KEPT = 8_000
"""Characters of the output of a command that the model gets: its end."""
_MAX_KEPT_COMMANDS = 10
_MAX_COMMAND = 2_000
"""Characters of a command that go along with the next message."""
_MAX_SHOWN_LINES = 2_000
_OUTPUT_TIMEOUT_SECONDS = 0.5
"""A process that left the group may hold the output open after the exit of the shell."""


class _Output(asyncio.SubprocessProtocol):
    """Receives the output of a command. `exited` is set when its first process has exited."""

    def __init__(self, show: Callable[[Sequence[str]], None]) -> None:
        self.exited = asyncio.Event()
        self.ended = asyncio.Event()
        """Every process that could write has exited."""
        self._show = show
        self._decoder, self._screen = StreamDecoder(), OutputScreen()
        self._rest = ""
        self._shown = 0
        self._tail = ""

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - as inherited
        """Show the complete lines."""
        text = self._decoder.decode(data)
        self._tail = (self._tail + self._screen.feed(text))[-_MAX_KEPT - 1 :]
        *lines, self._rest = (self._rest + text)[-_MAX_KEPT * 20 :].split("\n")
        self._show(lines[: max(_MAX_SHOWN_LINES - self._shown, 0)])
        self._shown += len(lines)

    def pipe_connection_lost(self, *_: object) -> None:
        """There is no more output."""
        self.ended.set()

    def process_exited(self) -> None:
        """Handle the exit of the shell; its background processes may still run."""
        self.exited.set()

    async def wait(self) -> str:
        """Wait for the exit and the output. Return the end of the output."""
        await self.exited.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(_OUTPUT_TIMEOUT_SECONDS):
                await self.ended.wait()
        if self._rest:
            self._show([self._rest])
        tail = self._tail + self._screen.rest()
        return tail if len(tail) <= _MAX_KEPT else f"[…]{tail[-_MAX_KEPT:]}"


class ShellRunner:
    """Runs one command at a time. `show` prints lines of its output."""

    def __init__(self, show: Callable[[Sequence[str]], None]) -> None:
        self.command = ""
        """The command that is running."""
        self._show = show
        self._transport: asyncio.SubprocessTransport | None = None
        self._stops = False
        """True if the command was ended before its process existed."""
        self._kept: list[RunCommand] = []

    async def run(self, command: str, folder: str) -> int:
        """Run a command in a folder and return its exit code, negative for a signal."""
        self.command = command
        try:
            return await self._run(command, folder)
        finally:
            self.stop()
            self.command, self._transport, self._stops = "", None, False

    def stop(self) -> bool:
        """End the running command and its processes. Return False if none is running."""
        if self._transport is None:
            self._stops = bool(self.command)
            return self._stops
        with suppress(ProcessLookupError):
            os.killpg(self._transport.get_pid(), signal.SIGKILL)
        return True

    def take_kept(self) -> list[RunCommand]:
        """Return the commands since the last message with their output, and forget them."""
        kept, self._kept = self._kept, []
        return kept

    def keep(self, kept: Sequence[RunCommand]) -> None:
        """Keep outputs for the next message after all."""
        self._kept = [*kept, *self._kept]

    async def _run(self, command: str, folder: str) -> int:
        transport, output = await asyncio.get_running_loop().subprocess_shell(
            lambda: _Output(self._show),
            command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # a group of its own, to be ended together
        )
        self._transport = transport
        if self._stops:
            self.stop()
        try:
            tail = await output.wait()
        finally:
            self.stop()
            await output.exited.wait()  # a cancelled command too leaves no process
            transport.close()
        code = transport.get_returncode()
        ran = RunCommand(command[:_MAX_COMMAND], tail.rstrip(), code or 0)
        self._kept = [*self._kept, ran][-_MAX_KEPT_COMMANDS:]
        return code or 0
