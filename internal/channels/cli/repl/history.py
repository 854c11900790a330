"""Input history, stored in a file of the home folder that only its owner can read."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History

_MAX_ENTRIES = 1_000
MAX_ENTRY_LENGTH = 100_000
"""Longer entries are not stored."""
_MAX_FILE_SIZE = 4 * 1024 * 1024


class HistoryFile(History):
    """One JSON string per line, newest last. Entries that start with a blank are not stored.

    If the file cannot be used, the history lasts as long as the session.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Yield the stored entries, newest first."""
        try:
            lines = self._read().splitlines()
        except OSError:
            return
        if len(lines) > 2 * _MAX_ENTRIES:
            lines = lines[-_MAX_ENTRIES:]
            with suppress(OSError):
                self._replace(lines)
        for line in reversed(lines):
            with suppress(ValueError):
                if isinstance(text := json.loads(line), str):
                    yield text

    def store_string(self, string: str) -> None:
        """Append an entry."""
        if not string.strip() or string.startswith(" ") or len(string) > MAX_ENTRY_LENGTH:
            return
        line = json.dumps(string, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with suppress(OSError):
            opened = self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(opened, line)
            finally:
                os.close(opened)

    def _read(self) -> str:
        opened = self._open(os.O_RDONLY)
        with os.fdopen(opened, "rb") as file:
            file.seek(max(os.fstat(opened).st_size - _MAX_FILE_SIZE, 0))
            return file.read(_MAX_FILE_SIZE).decode("utf-8", "replace")

    def _replace(self, lines: Iterable[str]) -> None:
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        draft.replace(self._path)

    def _open(self, how: int) -> int:
        # never follow a symbolic link, never block on a pipe
        return os.open(self._path, how | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
