"""The folders of sessions: the one that tools work in, and the private home of commands."""

import asyncio
import os
import shutil
from pathlib import Path

from internal.agent.domain.errors import InvalidRequest, StoreUnavailable
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Task
from internal.agent.domain.text import truncate
from internal.agent.ports.attachments import FileFolders


class SessionFolders:
    """One folder per session in `root`. All are created with mode 700 when they are first used."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, session_id: SessionId) -> str:
        """Return the folder of a session, which need not exist."""
        return str(self.root / session_id)

    def create(self, session_id: SessionId) -> str:
        """Return the folder of a session.

        Raises:
            StoreUnavailable: it cannot be created.
        """
        folder = self.root / session_id
        try:
            self.root.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{folder} cannot be created: {error.strerror}.") from error
        return str(folder)

    async def remove(self, session_id: SessionId) -> None:
        """Remove the folder of a session and everything in it, if there is one.

        Symbolic links are not followed.

        Raises:
            StoreUnavailable: a part of it cannot be removed.
        """
        folder = self.root / session_id
        if session_id in {"", ".", ".."} or folder.parent != self.root:
            return  # no id of a session
        try:
            await asyncio.to_thread(_remove_tree, folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreUnavailable(f"{folder} cannot be removed: {error.strerror}.") from error


class Workspaces:
    """Chooses the workspace of a task: the one that it names, or the session's own folder.

    Args:
        home: the home folder of Larkspur, in which the folders of sessions are.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self.folders = SessionFolders(home / "workspaces")
        self.homes = SessionFolders(home / "session-homes")
        self.files = SessionFolders(home / "session-files")

    def __call__(self, task: Task) -> str:
        """Return the workspace of a task.

        Raises:
            InvalidRequest: the named workspace is not a folder, or belongs to Larkspur itself.
            StoreUnavailable: the session's folder cannot be created.
        """
        named = task.spec.workspace
        if not named:
            workspace = self.folders.create(task.session_id)
        else:
            if not os.path.isdir(named):  # noqa: PTH112 - pathlib raises for a name too long
                raise InvalidRequest(f"The workspace {truncate(named, 200)} is not a folder.")
            if self._is_private(Path(named).resolve()):
                raise InvalidRequest(f"The workspace {named} belongs to Larkspur itself.")
            workspace = named
        self._create_file_folders(task.session_id, workspace)
        return workspace

    def file_folders(self, session_id: SessionId, workspace: str) -> FileFolders:
        """Return the folders of a session for files.

        They are in the workspace if that belongs to the session, else in the home folder.
        """
        own = self.folders.root / session_id
        folder = own if workspace == str(own) else self.files.root / session_id
        return FileFolders(str(folder / "input"), str(folder / "output"))

    def _create_file_folders(self, session_id: SessionId, workspace: str) -> None:
        folders = self.file_folders(session_id, workspace)
        if Path(folders.input).parent.parent == self.files.root:
            self.files.create(session_id)
        for folder in map(Path, folders):
            try:
                folder.mkdir(mode=0o700, exist_ok=True)
            except FileExistsError:
                continue  # a tool has put something else there, which no tool follows
            except OSError as error:
                raise StoreUnavailable(f"{folder} cannot be created: {error.strerror}.") from error

    async def remove(self, session_id: SessionId, /) -> None:
        """Remove the folders of a session. A workspace that a task named is never removed.

        Raises:
            StoreUnavailable: a part of them cannot be removed.
        """
        await self.folders.remove(session_id)
        await self.homes.remove(session_id)
        await self.files.remove(session_id)

    def _is_private(self, folder: Path) -> bool:
        """Return True for the home folder and what is in it, except the folders of sessions."""
        try:
            if self.folders.root.exists() and folder.parent.samefile(self.folders.root):
                return False
            return any(above.samefile(self._home) for above in (folder, *folder.parents))
        except FileNotFoundError:
            return False  # there is no home folder, or the workspace is gone


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
