"""Paths of the files that runs made on this machine. Standard library only."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from glob import escape
from pathlib import Path

from internal.config import home as home_folder

FileFinder = Callable[[str, str, int], str | None]
"""Returns the path of a file on this machine by session, name and size, None if it is not here."""


_FOLDERS = ("workspaces", "session-files")
"""Folders of sessions with a workspace of their own, and folders of earlier versions for the rest.

Subtasks with a folder of their own have one in `task-folders`.
"""


def find_local_file(session_id: str, name: str, size: int) -> str | None:
    """Return the path of a produced file in a workspace of its session on this machine, if any.

    A file of another size is another version.
    """
    home = home_folder.locate()
    for folder in _workspaces(home, session_id):
        path = folder / "output" / name
        with suppress(OSError, ValueError):
            if path.is_file() and not path.is_symlink() and path.stat().st_size == size:
                return str(path)
    return None


def _workspaces(home: Path, session_id: str) -> Iterator[Path]:
    yield from (home / folder / session_id for folder in _FOLDERS)
    yield from (home / "task-folders").glob(f"{escape(session_id)}.task-*")
    # each file holds the path of a folder in which runs of the session used files
    for record in (home / "workspace-changes" / "sessions").glob(f"{escape(session_id)}/*"):
        with suppress(OSError):
            yield Path(os.fsdecode(record.read_bytes()))
