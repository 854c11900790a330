"""The output of running calls, in files of this host that outlast the process."""

import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from internal.agent.domain.ids import RunId

MAX_KEPT_CHARACTERS = 28_000
"""Of longer output the first and the last half of this are kept: the model gets all of it."""

_HALF = MAX_KEPT_CHARACTERS // 2
_MAX_FILE_CHARACTERS = 2 * MAX_KEPT_CHARACTERS

logger = logging.getLogger(__name__)


class KeptOutput(NamedTuple):
    """Output of a call so far. `alive` is its last sign of life, as a POSIX time in seconds."""

    text: str
    alive: float


class CallOutputFile:
    """The file of one call. It exists from the first output or sign of life on.

    A file that cannot be written is logged, and does not affect the call.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._head = ""
        self._tail = ""
        self._total = 0
        self._in_file = 0

    @property
    def text(self) -> str:
        """The output, with a line in place of the omitted middle."""
        left_out = self._total - len(self._head) - len(self._tail)
        if not left_out:
            return self._head + self._tail
        return f"{self._head}\n… {left_out:,} characters left out …\n{self._tail}"

    def write(self, text: str) -> None:
        """Add output. Blocks for a write into the cache of the file system."""
        self._total += len(text)
        rest = text[_HALF - len(self._head) :] if len(self._head) < _HALF else text
        self._head += text[: len(text) - len(rest)]
        self._tail = (self._tail + rest)[-_HALF:]
        self._in_file += len(text)
        if self._in_file <= _MAX_FILE_CHARACTERS:
            self._store(text, "a")
        else:
            self._in_file = len(self.text)
            self._store(self.text, "w")

    def touch(self) -> None:
        """Note that the call is alive."""
        self._store("", "a")

    def _store(self, text: str, mode: str) -> None:
        path = self._path
        if path is None:
            return
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # written beside it: a process that is killed leaves the old file or the new one
            target = path.with_suffix(".new") if mode == "w" else path
            with target.open(mode, encoding="utf-8", errors="replace", newline="") as file:
                file.write(text)
            target.chmod(0o600)
            if target == path:
                os.utime(path)
            else:
                target.replace(path)
        except OSError as error:
            self._path = None
            logger.warning("output of a call is not kept", extra={"error": str(error)})


class CallOutputs:
    """The files of all running calls of this host.

    Args:
        folder: where they are; None to keep no output.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def open(self, run_id: RunId, call_id: str) -> CallOutputFile:
        """Return the file of a call that starts, or starts again."""
        self.remove(run_id, call_id)
        return CallOutputFile(self._path(run_id, call_id))

    def remove(self, run_id: RunId, call_id: str) -> None:
        """Remove the file of a call: its result is stored, or will be made again."""
        path = self._path(run_id, call_id)
        if path is None:
            return
        with suppress(OSError):
            path.unlink(missing_ok=True)
            path.parent.rmdir()  # unless it has others

    def read(self, run_id: RunId, call_id: str) -> KeptOutput | None:
        """Return the output of a call so far, None if it is unknown. Blocks."""
        path = self._path(run_id, call_id)
        if path is None:
            return None
        try:
            text = path.read_bytes().decode("utf-8", "replace")
            return KeptOutput(text, path.stat().st_mtime)
        except OSError:  # it ran on another host, or was killed in its first second
            return None

    def list_runs(self) -> list[RunId]:
        """Return the runs that have files. Blocks."""
        if self._folder is None:
            return []
        try:
            return [RunId(each.name) for each in self._folder.iterdir()]
        except OSError:
            return []

    def remove_run(self, run_id: RunId) -> None:
        """Remove the files of a run that has ended. Blocks."""
        if self._folder is not None:
            shutil.rmtree(self._folder / run_id, ignore_errors=True)

    def _path(self, run_id: RunId, call_id: str) -> Path | None:
        # ids of calls are plain words, see `assign_call_ids`
        return None if self._folder is None else self._folder / run_id / f"{call_id}.txt"


NO_OUTPUTS = CallOutputs()
