"""What was said before, kept in a file of the home folder that only its owner may read."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History

_MOST = 1_000
_LONGEST = 20_000
"""Longer texts are pastes: they are not worth coming back to."""
_LARGEST_FILE = 4 * 1024 * 1024


class HistoryFile(History):
    """One JSON string a line, the newest last. A text that begins with a blank is not kept.

    A file that cannot be used is no error: the history then lasts as long as the session.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Return what is kept, the newest first."""
        try:
            lines = self._read().splitlines()
        except OSError:
            return
        if len(lines) > 2 * _MOST:
            lines = lines[-_MOST:]
            with suppress(OSError):
                self._replace(lines)
        for line in reversed(lines):
            with suppress(ValueError):
                if isinstance(text := json.loads(line), str):
                    yield text

    def store_string(self, string: str) -> None:
        """Keep a text."""
        if not string.strip() or string.startswith(" ") or len(string) > _LONGEST:
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
            file.seek(max(os.fstat(opened).st_size - _LARGEST_FILE, 0))
            return file.read(_LARGEST_FILE).decode("utf-8", "replace")

    def _replace(self, lines: Iterable[str]) -> None:
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        draft.replace(self._path)

    def _open(self, how: int) -> int:
        # not through a link that someone laid, and never blocking on a pipe
        return os.open(self._path, how | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
