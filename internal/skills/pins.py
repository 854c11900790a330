"""The hashes of skills that a person has accepted, in `skills.json` of the home folder."""

import contextlib
import fcntl
import json
import os
import tempfile
from pathlib import Path

from internal.agent.domain.errors import LarkspurError

PINS_FILE = "skills.json"
_MAX_FILE_BYTES = 1_000_000


class PinsUnreadable(LarkspurError):
    """The file with the pins is damaged. No skill that needs a pin is offered."""


class SkillPins:
    """The accepted hashes, by the folder of the skill. Every call reads the file."""

    def __init__(self, home: Path) -> None:
        self._file = home / PINS_FILE

    def get(self, folder: Path) -> str | None:
        """Return the accepted hash, None if there is none or the file cannot be read."""
        try:
            return self._read().get(str(folder.absolute()))
        except PinsUnreadable:
            return None

    def put(self, folder: Path, sha256: str | None) -> None:
        """Accept a hash, None to accept none. The file is replaced atomically, with mode 600.

        Other threads and processes wait meanwhile.

        Raises:
            PinsUnreadable: the file is damaged; it is not changed.
            OSError: it cannot be written; it is not changed.
        """
        with self._file.with_suffix(".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            pins = self._read()
            pins.pop(str(folder.absolute()), None)
            if sha256 is not None:
                pins[str(folder.absolute())] = sha256
            self._write(pins)

    def _write(self, pins: dict[str, str]) -> None:
        descriptor, draft = tempfile.mkstemp(prefix=f"{PINS_FILE}-", dir=self._file.parent)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
                file.write(json.dumps({"pins": pins}, indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(self._file)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(draft).unlink()
            raise

    def _read(self) -> dict[str, str]:
        try:
            with self._file.open(encoding="utf-8") as file:
                pins = json.loads(file.read(_MAX_FILE_BYTES))["pins"]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            pins = None
        if not isinstance(pins, dict) or not all(isinstance(each, str) for each in pins.values()):
            raise PinsUnreadable(f"{self._file} is damaged; correct it or delete it.")
        return pins
