"""The id of a folder, in a file in it, by which hosts find out whether they share the folder."""

import os
import secrets
from pathlib import Path

from internal.agent.domain.errors import StoreUnavailable

MARKER_FILE = ".larkspur-storage"
_MAX_BYTES = 200


def new_marker() -> str:
    """Return a new id."""
    return secrets.token_hex(16)


def find_marker(folder: Path, new: str = "") -> str:
    """Return the id of a folder. One without an id gets `new`; without that "" is returned.

    Processes that do this at once get the same id. With `new` a missing folder is created.

    Raises:
        StoreUnavailable: it cannot be read or written.
    """
    path = folder / MARKER_FILE
    try:
        found = _read(path)
        if found or not new:
            return found
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"{MARKER_FILE}.{secrets.token_hex(8)}")
        try:
            with draft.open("x", encoding="ascii") as file:
                file.write(new)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was first
        finally:
            draft.unlink(missing_ok=True)
        return _read(path)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise StoreUnavailable(f"The folder {folder} cannot be used: {reason}.") from error


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return ""
