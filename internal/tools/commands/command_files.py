"""Files of background commands: their records, and the end of their output.

They outlive the command and the process, up to the end of their session.
"""

import fcntl
import logging
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.domain.secrets import mask_secrets_in_json
from internal.agent.ports.commands import BackgroundCommand
from internal.tools.commands.printed_text import find_address

logger = logging.getLogger(__name__)

MAX_KEPT_BYTES = 524_288
"""The end of the output that is kept of a command."""
MAX_LISTED = 32
"""Commands of a session that are kept, the newest ones."""

_ENDED_WITH_LARKSPUR = "[ended with Larkspur]"
_decoder = msgspec.json.Decoder(BackgroundCommand)


class StoredCommand(NamedTuple):
    """A command of another process, or of one that has ended, with the end of its output."""

    record: BackgroundCommand
    output: bytes
    end: str


class CommandOutputFile:
    """The output of a command in a file of at most twice `MAX_KEPT_BYTES`.

    The process that runs the command holds a lock on it. A full disk loses output for later
    readers, it does not stop the command.
    """

    def __init__(self, folder: Path, command_id: str) -> None:
        self._record = folder / f"{command_id}.json"
        self._file: BinaryIO | None = None
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = (folder / f"{command_id}.log").open("wb", buffering=0)
            (folder / f"{command_id}.log").chmod(0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def save(self, record: BackgroundCommand, end: str = "") -> None:
        """Replace the record of the command."""
        part = self._record.with_suffix(".part")
        try:
            part.write_bytes(msgspec.json.encode({**msgspec.to_builtins(record), "end": end}))
            part.replace(self._record)
        except OSError as error:
            logger.warning("a background command was not stored", extra={"reason": str(error)})

    def write(self, chunk: bytes, kept: bytes | bytearray) -> None:
        """Append output; `kept` is the end of all output, including it."""
        if self._file is None:
            return
        with suppress(OSError):
            if self._file.tell() + len(chunk) > 2 * MAX_KEPT_BYTES:
                self._file.seek(0)
                self._file.truncate()
                chunk = bytes(kept)
            self._file.write(mask_secrets_in_json(chunk))

    def close(self) -> None:
        """Release the file: the command has ended."""
        if self._file is not None:
            self._file.close()


class CommandFiles:
    """The files of the commands of all sessions. The methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, session_id: SessionId, command_id: str) -> CommandOutputFile:
        """Create the files of a new command, and remove the oldest ones."""
        folder = self._of(session_id)
        for path in self._newest_first(session_id)[MAX_LISTED - 1 :]:
            if not _is_locked(path.with_suffix(".log")):
                path.with_suffix(".log").unlink(missing_ok=True)
                path.unlink(missing_ok=True)
        return CommandOutputFile(folder, command_id)

    def list_stored(self, session_id: SessionId) -> list[StoredCommand]:
        """Return the stored commands of a session, oldest first."""
        paths = reversed(self._newest_first(session_id)[:MAX_LISTED])
        found = [one for path in paths if (one := _read(path)) is not None]
        return sorted(found, key=lambda one: one.record.started)

    def remove(self, session_id: SessionId) -> None:
        """Remove the files of a session."""
        shutil.rmtree(self._of(session_id), ignore_errors=True)

    def _newest_first(self, session_id: SessionId) -> list[Path]:
        found: list[tuple[float, Path]] = []
        for path in self._of(session_id).glob("*.json"):
            with suppress(OSError):
                found.append((path.stat().st_mtime, path))
        return [path for _, path in sorted(found, reverse=True)]

    def _of(self, session_id: SessionId) -> Path:
        # ids are made by Larkspur, but they arrive in requests
        return self._folder / session_id.replace("/", "_").replace(".", "_")


def _is_locked(path: Path) -> bool:
    """Return whether a process that lives holds the file: its command runs."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _read(path: Path) -> StoredCommand | None:
    log = path.with_suffix(".log")
    try:
        data = path.read_bytes()
        record = _decoder.decode(data)
        end = msgspec.json.decode(data).get("end", "")
        output = log.read_bytes() if log.exists() else b""
        written = (log if log.exists() else path).stat().st_mtime
    except (OSError, msgspec.MsgspecError):
        return None
    if record.ended is None and not _is_locked(log):
        time = rfc3339(datetime.fromtimestamp(written, UTC))
        record = msgspec.structs.replace(record, ended=time)
        end = _ENDED_WITH_LARKSPUR
    total = max(record.output_bytes, len(output))
    address = record.address or find_address(output[:MAX_KEPT_BYTES])
    record = msgspec.structs.replace(record, output_bytes=total, address=address)
    return StoredCommand(record, output[-MAX_KEPT_BYTES:], end)
