"""Messages to and from a server that the sandbox runs: one JSON object per line.

The SDK's own transport leaves processes that a server started; the sandbox ends all of them. The
SDK also reads without bounds.
"""

import asyncio
import contextlib
import logging
import socket
from collections import deque
from collections.abc import AsyncGenerator, Callable

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from msgspec import structs

from internal.agent.domain.errors import ToolError
from internal.agent.domain.text import escape_hidden, truncate_line
from internal.agent.ports.sandbox import Sandbox, SandboxCommand, SandboxResult
from internal.mcp.lenient_transport import received_items
from internal.mcp.limits import MAX_MESSAGE_BYTES, MAX_SERVER_OUTPUT_BYTES, ServerFailure
from internal.mcp.message_parser import MessageParser
from internal.mcp.output_end import end_of_output
from internal.output_pipe.pipe import OutputPipe

logger = logging.getLogger(__name__)

CLOSE_GRACE_SECONDS = 1.0
"""Time that a server has to exit after its standard input is closed."""
MAX_LOGGED_LINES = 200
MAX_LOGGED_CHARS = 500
_KEPT_LINES = 30
_MAX_END_CHARS = 500
_MAX_PART_BYTES = 65_536
_MAX_SITES = 5


_START_PROBLEMS = {
    126: "a program that it needs may not be executed",
    127: "a program that it needs is missing",
}
"""Meanings of the exit codes of shells and of the launcher of the sandbox."""


class ServerLog:
    """Standard error of a server: logged with secrets masked; the end is kept. Bounded.

    Args:
        server: the name of the server.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._logged = 0
        self._part = b""
        self._last: deque[str] = deque(maxlen=_KEPT_LINES)

    @property
    def end(self) -> str:
        """The last lines, joined to one."""
        return end_of_output(self._last, _MAX_END_CHARS)

    def write(self, chunk: bytes) -> None:
        """Add output, which may end within a line."""
        *lines, rest = (self._part + chunk).split(b"\n")
        self._part = rest[:_MAX_PART_BYTES]
        for line in lines:
            self._add(line)

    def finish(self) -> None:
        """Add the last line if it has no end."""
        self._add(self._part)
        self._part = b""

    def _add(self, line: bytes) -> None:
        text = line[: 4 * MAX_LOGGED_CHARS].decode(errors="replace")
        text = truncate_line(escape_hidden(text), MAX_LOGGED_CHARS)
        if not text:
            return
        self._last.append(text)
        self._logged += 1
        if self._logged <= MAX_LOGGED_LINES:
            logger.info("mcp server output", extra={"server": self._server, "line": text})


class MessageLines:
    """The lines of standard output, until they are read. Bounded."""

    def __init__(self) -> None:
        self.received_bytes = 0
        self._part = bytearray()
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._changed = asyncio.Event()
        self._is_closed = False

    def write(self, chunk: bytes) -> None:
        """Add output.

        Raises:
            ServerFailure: the server writes too much, or faster than it is read.
        """
        self.received_bytes += len(chunk)
        if self.received_bytes > MAX_SERVER_OUTPUT_BYTES:
            raise ServerFailure(f"it wrote more than {MAX_SERVER_OUTPUT_BYTES:,} bytes")
        begin = len(self._part)
        self._part += chunk
        if self._part.find(b"\n", begin) >= 0:
            *lines, rest = self._part.split(b"\n")
            self._part = rest
            self._lines.extend(map(bytes, lines))
            self._waiting_bytes += sum(map(len, lines))
            self._changed.set()
        if len(self._part) > MAX_MESSAGE_BYTES:
            raise ServerFailure(f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes")
        if self._waiting_bytes > 2 * MAX_MESSAGE_BYTES:
            raise ServerFailure("it sends messages faster than they can be read")

    def close(self) -> None:
        """End the lines."""
        self._is_closed = True
        self._changed.set()

    async def next(self) -> bytes | None:
        """Wait for the next line; None after the last one."""
        while not self._lines:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        line = self._lines.popleft()
        self._waiting_bytes -= len(line)
        return line


class ServerProcess:
    """A server in the sandbox, from its start until none of its processes is left.

    Args:
        sandbox: runs it.
        command: the command; its input and output are replaced.
        server: the name of the server.
        on_end: is called when it has ended.
        on_stray: is called with each line that is not a message.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        command: SandboxCommand,
        server: str,
        on_end: Callable[[], None],
        *,
        on_stray: Callable[[], None] = lambda: None,
    ) -> None:
        self._sandbox, self._command, self._on_end = sandbox, command, on_end
        self._on_stray = on_stray
        self.stray_lines = 0
        self._lines = MessageLines()
        self._log = ServerLog(server)
        self._end = ""
        self._result: SandboxResult | None = None
        self.stray_line = ""
        """The last line on standard output that was no message, for people."""

    @property
    def received_bytes(self) -> int:
        """The number of bytes that the server has written to standard output."""
        return self._lines.received_bytes

    @property
    def failure(self) -> str:
        """The reason why the process ended, with the end of its output; "" if nothing is known."""
        return ": ".join(filter(None, (self._end, self._log.end)))

    @property
    def refused(self) -> tuple[str, ...]:
        """The sites that it tried to reach and may not, known once it has ended."""
        return self._result.refused if self._result else ()

    @property
    def refused_addresses(self) -> tuple[str, ...]:
        """The sites whose host is allowed and whose address is not, known once it has ended."""
        return self._result.refused_addresses if self._result else ()

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncGenerator[TransportStreams]:
        """Run the server and yield the streams of its messages. They close when it has ended."""
        found, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        own, its = socket.socketpair()
        own.setblocking(False)
        with own, its, messages, sent:
            running = asyncio.create_task(self._run(its))
            tasks = [
                running,
                asyncio.create_task(self._read(found)),
                asyncio.create_task(self._write(own, outgoing)),
            ]
            try:
                yield messages, sent
            finally:
                with contextlib.suppress(OSError):
                    own.shutdown(socket.SHUT_WR)
                await _finish(running, tasks)

    async def _run(self, stdin: socket.socket) -> None:
        """Run the server to its end; the lines are closed then."""
        try:
            async with OutputPipe(self._log.write) as log:
                errors = log.writer.fileno()
                command = structs.replace(self._command, stdin=stdin.fileno(), stderr=errors)
                try:
                    result = await self._sandbox.run(command, self._lines.write)
                    self._result = result
                    self._end = _describe(result, is_isolated=self._sandbox.capabilities.isolated)
                except (ToolError, ServerFailure) as error:
                    self._end = str(error)
                finally:
                    stdin.close()
                    log.writer.close()
                    await log.drain()
        finally:
            self._log.finish()
            self._lines.close()
            self._on_end()

    async def _read(self, found: anyio.abc.ObjectSendStream[SessionMessage | Exception]) -> None:
        parser = MessageParser()
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with found:
                while (line := await self._lines.next()) is not None:
                    parsed = parser.parse(line)
                    if not isinstance(parsed, list):
                        self._note_stray(line)
                        self._log.write(line[: 4 * MAX_LOGGED_CHARS] + b"\n")  # no message: a log
                    for item in received_items(parsed):
                        await found.send(item)

    def _note_stray(self, line: bytes) -> None:
        text = line[: 4 * MAX_LOGGED_CHARS].decode(errors="replace")
        if text := truncate_line(escape_hidden(text), MAX_LOGGED_CHARS):
            self.stray_line = text
            self.stray_lines += 1
            self._on_stray()

    async def _write(
        self, stdin: socket.socket, outgoing: anyio.abc.ObjectReceiveStream[SessionMessage]
    ) -> None:
        loop = asyncio.get_running_loop()
        async with outgoing:
            async for each in outgoing:
                data = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await loop.sock_sendall(stdin, data.encode() + b"\n")
                except OSError:  # it has ended, or closed its input
                    self._lines.close()
                    return


async def _finish(running: asyncio.Task[None], tasks: list[asyncio.Task[None]]) -> None:
    """Let the server exit, end it after the grace period, and wait until all tasks have ended."""
    try:
        await asyncio.wait({running}, timeout=CLOSE_GRACE_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
        while pending := [task for task in tasks if not task.done()]:
            with contextlib.suppress(asyncio.CancelledError):  # no process may be left
                await asyncio.wait(pending)


def _describe(result: SandboxResult, *, is_isolated: bool) -> str:
    if result.exceeded and result.exceeded != "connections":
        return f"it used more {result.exceeded} than it may"
    if (problem := _START_PROBLEMS.get(result.exit_code)) is not None:
        also = ", or is outside of what the server sees" if is_isolated else ""
        return f"{problem}{also} (exit code {result.exit_code})"
    how = f"exited with {result.exit_code}" if result.exit_code >= 0 else "was ended"
    return f"it {how}{_describe_refused(result)}"


def _describe_refused(result: SandboxResult) -> str:
    """Return the destinations that a server may not reach, as the end of a sentence.

    A host that is allowed can have an address that is not.
    """
    sentence = ""
    if hosts := result.refused[:_MAX_SITES]:
        sentence += f", and may not reach {', '.join(hosts)}"
    if sites := result.refused_addresses[:_MAX_SITES]:
        sentence += (
            f", and may not reach {', '.join(sites)}: the host is allowed, but its address is of"
            " this machine or of a private network"
        )
    if sites := result.forbidden[:_MAX_SITES]:
        sentence += f", and does not reach {', '.join(sites)}, whose address is never reached"
    if result.exceeded == "connections":
        sentence += ", and had too many connections open"
    return sentence
