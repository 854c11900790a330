"""The folder that a task's tools work in."""

import asyncio
import os
import shutil
from pathlib import Path

from internal.agent.domain.errors import InvalidRequest, StoreUnavailable
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Task


class Workspaces:
    """Chooses the workspace of a task: the one that it names, or a folder per session in `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(self, task: Task) -> str:
        """Return the workspace of a task. The folder of a session is created with mode 700.

        Raises:
            InvalidRequest: the named workspace is not a folder.
            StoreUnavailable: the session's folder cannot be created.
        """
        named = task.spec.workspace
        if named:
            if not Path(named).is_dir():
                raise InvalidRequest(f"The workspace {named} is not a folder.")
            return named
        folder = self._root / task.session_id
        try:
            self._root.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{folder} cannot be created: {error.strerror}.") from error
        return str(folder)

    async def remove(self, session_id: SessionId, /) -> None:
        """Remove the folder of a session and everything in it, if there is one.

        A workspace that a task named is never removed. Symbolic links are not followed.

        Raises:
            StoreUnavailable: a part of it cannot be removed.
        """
        folder = self._root / session_id
        if session_id in {"", ".", ".."} or folder.parent != self._root:
            return  # no id of a session
        try:
            await asyncio.to_thread(_remove_tree, folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreUnavailable(f"{folder} cannot be removed: {error.strerror}.") from error


def _remove_tree(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
        return
    folder.chmod(0o700)
    for name, folders, _ in os.walk(folder):  # a tool may have taken the right to change a folder
        for child in (Path(name, each) for each in folders):
            if not child.is_symlink():
                child.chmod(0o700)
    shutil.rmtree(folder)
