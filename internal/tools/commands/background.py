"""The background commands of this process. They end with it, at the latest."""

import asyncio
import secrets
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from msgspec import structs

from internal.agent.domain.errors import NotFound, ToolError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.text import truncate
from internal.agent.ports.commands import COMMAND_ID_PREFIX, BackgroundCommand, PrintedOutput
from internal.agent.ports.runtime import Clock
from internal.agent.ports.sandbox import Sandbox
from internal.agent.ports.tools import CallContext
from internal.text_encodings.stream import StreamDecoder
from internal.tools.commands.command_end import describe_end
from internal.tools.commands.command_files import (
    MAX_KEPT_BYTES,
    MAX_LISTED,
    CommandFiles,
    CommandOutputFile,
    StoredCommand,
)
from internal.tools.commands.command_watch import CommandWatch, WatchedFiles
from internal.tools.commands.configuration_files import describe_changes, log_changes
from internal.tools.commands.git_folders import ADVICE, is_kept_from_git
from internal.tools.commands.printed_text import find_address, printed_text
from internal.tools.instruction_trust import InstructionTrust

MAX_RUNNING = 8
"""Running commands of a session."""
MAX_SECONDS = 24 * 3600.0
"""The longest that a background command runs."""

MAX_SHOWN_BYTES = 65_536
"""The end of the output that people read of a command."""
_MAX_SEARCHED_BYTES = 65_536
"""The beginning of the output in which an address is looked for."""
_MAX_COMMAND_CHARS = 2_000


class OutputPart(NamedTuple):
    """A part of the output of a command, and where the next part begins.

    `missing` is how many bytes before it are no longer kept. `end` describes the end of the
    command, "" while it runs, and `configuration` are the files that it changed, which agents and
    programs trust.
    """

    text: str
    next: int
    missing: int
    end: str
    configuration: tuple[str, ...] = ()


class BackgroundCommandPool:
    """Starts commands and keeps the end of their output. Implements `BackgroundCommands`.

    `trust` remembers the texts that may instruct agents, also for commands in the foreground.
    `folder` is where commands and their output are kept after the end of this process.
    """

    def __init__(self, clock: Clock, trust: InstructionTrust, folder: Path | None = None) -> None:
        self._clock, self.watched = clock, WatchedFiles(trust)
        self._files = None if folder is None else CommandFiles(folder)
        self._commands: dict[str, _RunningCommand] = {}

    def start(
        self,
        sandbox: Sandbox,
        watch: CommandWatch,
        call: CallContext,
        *,
        shown: str,
        kept: bool,
    ) -> str:
        """Start the command of a watch and return its id. `shown` is its text for people.

        Raises:
            ToolError: too many commands of the session run.
        """
        own = self._of_session(call.session_id)
        if sum(each.record.ended is None for each in own) >= MAX_RUNNING:
            raise ToolError(
                f"{MAX_RUNNING} background commands of this session run already: stop one with"
                " shell_stop"
            )
        ended = [each for each in own if each.record.ended is not None]
        for each in ended[: max(len(own) + 1 - MAX_LISTED, 0)]:
            del self._commands[each.record.id]
        record = BackgroundCommand(
            f"{COMMAND_ID_PREFIX}{secrets.token_hex(3)}",
            call.session_id,
            call.run_id,
            truncate(shown, _MAX_COMMAND_CHARS),
            rfc3339(self._clock.now()),
            kept,
        )
        file = None if self._files is None else self._files.create(call.session_id, record.id)
        self._commands[record.id] = _RunningCommand(record, call, self._clock, watch, file=file)
        self._commands[record.id].start(sandbox)
        return record.id

    async def read(
        self, session_id: SessionId, command_id: str, since: int, wait_seconds: float
    ) -> OutputPart:
        """Return the output after so many bytes; wait until there is some, or the command ends.

        Raises:
            NotFound: the session has no such command.
        """
        return await self._find(session_id, command_id).read(since, wait_seconds)

    def of_session(self, session_id: SessionId) -> list[BackgroundCommand]:
        """Return the commands of a session; see the port."""
        own = {each.record.id: each.record for each in self._of_session(session_id)}
        stored = {one.record.id: one.record for one in self._stored(session_id)}
        return sorted((stored | own).values(), key=lambda one: one.started)

    def read_last(self, session_id: SessionId, command_id: str) -> PrintedOutput:
        """Return the end of the output of a command; see the port."""
        own = self._commands.get(command_id)
        if own is not None and own.record.session_id == session_id:
            record, output, end = own.stored
        else:
            found = (one for one in self._stored(session_id) if one.record.id == command_id)
            record, output, end = next(found, None) or self._missing(command_id)
        shown = output[-MAX_SHOWN_BYTES:]
        return PrintedOutput(record, printed_text(shown), record.output_bytes - len(shown), end)

    async def stop(self, session_id: SessionId, command_id: str) -> BackgroundCommand:
        """End a command; see the port."""
        found = self._find(session_id, command_id)
        await found.end()
        return found.record

    def request_end(self, run_id: RunId) -> None:
        """Begin to end the commands of a run; see the port."""
        for each in self._of_run(run_id):
            each.request_end()

    async def end_run(self, run_id: RunId) -> None:
        """End the commands of a run; see the port."""
        await self._end(self._of_run(run_id))

    async def end_session(self, session_id: SessionId) -> None:
        """End all commands of a session; see the port."""
        found = self._of_session(session_id)
        await self._end(found)
        for each in found:
            self._commands.pop(each.record.id, None)
        if self._files is not None:
            self._files.remove(session_id)

    async def close(self) -> None:
        """End all commands."""
        await self._end([*self._commands.values()])

    async def _end(self, commands: "list[_RunningCommand]") -> None:
        for each in commands:
            each.request_end()
        for each in commands:
            await each.end()

    def _of_session(self, session_id: SessionId) -> "list[_RunningCommand]":
        return [one for one in self._commands.values() if one.record.session_id == session_id]

    def _of_run(self, run_id: RunId) -> "list[_RunningCommand]":
        every = self._commands.values()
        return [one for one in every if one.record.run_id == run_id and not one.record.kept]

    def _find(self, session_id: SessionId, command_id: str) -> "_RunningCommand":
        found = self._commands.get(command_id)
        if found is None or found.record.session_id != session_id:
            self._missing(command_id)
        return found

    def _stored(self, session_id: SessionId) -> list[StoredCommand]:
        return [] if self._files is None else self._files.list_stored(session_id)

    @staticmethod
    def _missing(command_id: str) -> NoReturn:
        raise NotFound(
            f"There is no background command {command_id[:40]!r}: it ended with its run, with"
            " its session or when Larkspur stopped.",
            reason_code="no_command",
            command=command_id[:40],
        )


class _RunningCommand:
    """One command, also after its end."""

    def __init__(
        self,
        record: BackgroundCommand,
        call: CallContext,
        clock: Clock,
        watch: CommandWatch,
        *,
        file: CommandOutputFile | None,
    ) -> None:
        self._record = record
        self._file = file
        self._address = ""
        self._call = call
        self._watch = watch
        self._clock = clock
        self._output = bytearray()
        self._dropped = 0
        self._ended = ""
        self._exit_code: int | None = None
        self._ended_at: str | None = None
        self._configuration: tuple[str, ...] = ()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None]

    @property
    def record(self) -> BackgroundCommand:
        """The command as people see it."""
        return structs.replace(
            self._record,
            ended=self._ended_at,
            exit_code=self._exit_code,
            output_bytes=self._dropped + len(self._output),
            address=self._address,
        )

    @property
    def stored(self) -> StoredCommand:
        """The command with the output that is kept."""
        return StoredCommand(self.record, bytes(self._output), self._ended)

    def start(self, sandbox: Sandbox) -> None:
        """Start the command."""
        if self._file is not None:
            self._file.save(self.record)
        self._task = asyncio.create_task(self._run(sandbox))

    def request_end(self) -> None:
        """Begin to end the command and all that it started."""
        self._task.cancel()

    async def end(self) -> None:
        """End the command and all that it started."""
        self.request_end()
        await asyncio.wait({self._task})

    async def read(self, since: int, wait_seconds: float) -> OutputPart:
        """Return the output after so many bytes; see `BackgroundCommandPool.read`."""
        found = self._read(since)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_seconds):
                while not (found.text or found.end):
                    self._changed.clear()
                    await self._changed.wait()
                    found = self._read(since)
        return found

    def _read(self, since: int) -> OutputPart:
        start = max(since - self._dropped, 0)
        decoder = StreamDecoder(bytes(self._output[:start]))
        text = decoder.decode(bytes(self._output[start:]), final=bool(self._ended))
        end = self._dropped + max(len(self._output), start) - decoder.pending
        missing = max(self._dropped - since, 0)
        return OutputPart(text, end, missing, self._ended, self._configuration)

    async def _run(self, sandbox: Sandbox) -> None:
        try:
            async with self._watch as watch:
                result = await sandbox.run(watch.command, self._write)
            self._exit_code = result.exit_code
            self._ended = describe_end(result, watch.command.timeout_seconds)
        except ToolError as error:
            self._ended = f"[{error}]"
        except asyncio.CancelledError:
            self._ended = "[stopped]"
        finally:
            self._configuration = self._watch.changed
            log_changes(self._configuration, self._call)  # nobody may read its output any more
            end = self._ended or "[it broke: the log of Larkspur has the reason]"
            self._ended = "\n".join(
                filter(None, (end, self._advice(), describe_changes(self._configuration)))
            )
            self._ended_at = rfc3339(self._clock.now())
            if self._file is not None:
                self._file.save(self.record, self._ended)
                self._file.close()
            self._changed.set()

    def _advice(self) -> str:
        output = self._output.decode("utf-8", "replace")
        return ADVICE if self._watch.protects and is_kept_from_git(output) else ""

    def _write(self, chunk: bytes) -> None:
        self._output += chunk
        if (more := len(self._output) - MAX_KEPT_BYTES) > 0:
            del self._output[:more]
            self._dropped += more
        if not self._address and self._dropped + len(self._output) < _MAX_SEARCHED_BYTES:
            self._address = find_address(self._output)
        if self._file is not None:
            self._file.write(chunk, self._output)
        self._changed.set()
