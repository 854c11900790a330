"""Instruction files that a command created or changed: nothing follows them before a person's yes.

A command runs unasked, and an `AGENTS.md` that it leaves would instruct every later run. What it
wrote is remembered in the home folder by the hash of its beginning; a person's edit makes it
another text, which is followed.
"""

import fcntl
import hashlib
import json
import logging
import os
import stat
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from internal.agent.ports.instructions import FILE_NAMES, MAX_TEXT_BYTES

logger = logging.getLogger(__name__)

MAX_FILES = 1_000
"""Files that are remembered; the oldest are forgotten."""


class UntrustedFiles:
    """The instruction files that no person has agreed to. Processes share them by a file.

    Args:
        home: the folder of the file.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "untrusted.json"

    def record(self, paths: Iterable[str]) -> None:
        """Remember what instruction files contain now. Other files are ignored. Blocks."""
        found = {}
        for path in paths:
            if os.path.basename(path) in FILE_NAMES:  # noqa: PTH119 - text
                content = _read_beginning(path)
                if content is not None:
                    found[os.path.realpath(path)] = text_hash(content)
        if not found:
            return
        try:
            with self._changing() as known:
                for path, digest in found.items():
                    known.pop(path, None)
                    known[path] = digest
        except OSError:  # they are named to people in any case
            logger.exception("untrusted files cannot be remembered", extra={"files": [*found]})

    def contains(self, path: str, content: bytes) -> bool:
        """Return True if a command wrote the beginning of a file, and nobody agreed. Blocks.

        Args:
            path: its real path.
            content: its beginning, up to `MAX_TEXT_BYTES`.
        """
        return self._read().get(path) == text_hash(content)

    def trust(self, path: str) -> bool:
        """Follow a file from now on; False if it was not remembered. Blocks.

        Raises:
            OSError: this cannot be stored.
        """
        with self._changing() as known:
            return known.pop(os.path.realpath(path), None) is not None

    def _read(self) -> dict[str, str]:
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            logger.warning("untrusted files cannot be read", extra={"file": str(self._path)})
            return {}
        return dict(values) if isinstance(values, Mapping) else {}

    @contextmanager
    def _changing(self) -> Generator[dict[str, str]]:
        """Yield what is remembered, and store what it becomes."""
        with self._path.with_suffix(".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self._read()
            yield known
            kept = dict([*known.items()][-MAX_FILES:])
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(kept), encoding="utf-8")
            new.chmod(0o600)
            new.replace(self._path)


def text_hash(content: bytes) -> str:
    """Return the hash of the part of a file that a model gets."""
    return hashlib.sha256(content[:MAX_TEXT_BYTES]).hexdigest()


def _read_beginning(path: str) -> bytes | None:
    """Return the beginning of a regular file, wherever links lead; None for anything else."""
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as file:
            if stat.S_ISREG(os.fstat(number).st_mode):
                return file.read(MAX_TEXT_BYTES)
    return None
