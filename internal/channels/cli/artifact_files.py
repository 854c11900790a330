"""Where files that runs made are on this machine. Standard library only."""

from collections.abc import Callable
from contextlib import suppress
from glob import escape

from internal.config import home as home_folder

FileFinder = Callable[[str, str, int], str | None]
"""Returns the path of a file on this machine by session, name and size, None if it is not here."""


_FOLDERS = ("session-files", "workspaces")
"""Folders of sessions that work in a folder of a person, and of those with one of their own.

Subtasks with a folder of their own have one in `task-folders`.
"""


def find_local_file(session_id: str, name: str, size: int) -> str | None:
    """Return the path of a produced file in the folder of its session on this machine, if any.

    A file of another size is another version.
    """
    home = home_folder.locate()
    own = (home / "task-folders").glob(f"{escape(session_id)}.task-*")
    for folder in (*(home / folder / session_id for folder in _FOLDERS), *own):
        path = folder / "output" / name
        with suppress(OSError, ValueError):
            if path.is_file() and not path.is_symlink() and path.stat().st_size == size:
                return str(path)
    return None
