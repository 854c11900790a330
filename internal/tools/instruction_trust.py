"""The texts of instruction files that agents may follow.

A command runs unasked, and an `AGENTS.md` that it leaves would instruct every later run. So a text
in a folder where commands run is followed only if the file had it before the first of them, or a
person agreed to it. Later events, such as a commit, prove nothing.
"""

import fcntl
import hashlib
import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from internal.agent.ports.instructions import MAX_TEXT_BYTES

logger = logging.getLogger(__name__)

MAX_FOLDERS = 5_000
"""Folders of commands that are remembered; beyond, commands count as run everywhere."""
MAX_FILES = 5_000
"""Files whose texts are remembered; the oldest are forgotten, and not followed."""

_MAX_TEXTS = 16  # of one file


class _Known(msgspec.Struct):
    """`folders` are the folders of commands, `texts` the hashes of a file's texts by path."""

    folders: list[str] = []
    texts: dict[str, list[str]] = {}

    def has_commands(self, path: str) -> bool:
        """Return True if a command may have written a file."""
        full = len(self.folders) >= MAX_FOLDERS
        return full or any(f"{path}/".startswith(f"{each.rstrip('/')}/") for each in self.folders)

    def add(self, path: str, digest: str) -> None:
        """Remember a text of a file."""
        texts = self.texts.pop(path, [])
        self.texts[path] = [*(each for each in texts if each != digest), digest][-_MAX_TEXTS:]


class InstructionTrust:
    """The texts that are followed. Processes share them by a file; the methods block.

    Args:
        home: the folder of the file.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "instructions.json"

    def begin_commands(self, folder: str, texts: Callable[[], Mapping[str, bytes]]) -> None:
        """Note that commands run in a folder from now on.

        Args:
            folder: its real path.
            texts: returns the real paths of the instruction files in it and the beginning of each,
                up to `MAX_TEXT_BYTES`. Called only before the first command.
        """
        if self._read().has_commands(folder):
            return
        found = texts()
        try:
            with self._changing() as known:
                for path, content in found.items():
                    if not known.has_commands(path):
                        known.add(path, text_hash(content))
                known.folders.append(folder)
        except OSError:  # changed files are named to people in any case
            logger.exception("instruction files cannot be remembered", extra={"folder": folder})

    def follows(self, path: str, content: bytes, *, is_own: bool) -> bool:
        """Return True if the text of a file may be followed, and remember it then.

        Args:
            path: its real path.
            content: its beginning, up to `MAX_TEXT_BYTES`.
            is_own: the folder is Larkspur's own, in which nobody but agents writes. A text is
                followed there if it was followed somewhere else.
        """
        known, digest = self._read(), text_hash(content)
        if is_own:
            return any(digest in texts for texts in known.texts.values())
        if digest in known.texts.get(path, ()):
            return True
        if known.has_commands(path):
            return False
        self.trust(path, content)
        return True

    def trust(self, path: str, content: bytes) -> bool:
        """Follow a text of a file from now on; False if this cannot be stored.

        Args:
            path: its real path.
            content: its beginning, up to `MAX_TEXT_BYTES`.
        """
        try:
            with self._changing() as known:
                known.add(path, text_hash(content))
        except OSError:
            logger.exception("instruction files cannot be remembered", extra={"file": path})
            return False
        return True

    def _read(self) -> _Known:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Known)
        except FileNotFoundError:
            return _Known()
        except (OSError, msgspec.DecodeError):
            logger.warning("instruction files cannot be read", extra={"file": str(self._path)})
            return _Known(["/"])  # nothing is followed

    @contextmanager
    def _changing(self) -> Generator[_Known]:
        """Yield the stored trust, and store its changes."""
        with self._path.with_suffix(".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self._read()
            yield known
            known.texts = dict([*known.texts.items()][-MAX_FILES:])
            new = self._path.with_suffix(".new")
            new.touch(0o600)
            new.write_bytes(msgspec.json.encode(known))
            new.replace(self._path)


def text_hash(content: bytes) -> str:
    """Return the hash of the part of a file that a model gets."""
    return hashlib.sha256(content[:MAX_TEXT_BYTES]).hexdigest()
