"""The folders of sessions and subtasks that tools work in, and the private homes of commands."""

import asyncio
import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from internal.agent.domain.delegation.subtask import WorkspaceChoice
from internal.agent.domain.errors import InvalidRequest, StoreUnavailable
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Task
from internal.agent.domain.text import escape_invisible, truncate
from internal.agent.ports.attachments import FileFolders
from internal.agent.ports.workspaces import Worktrees
from internal.open_files.paths import find_links, names_in, open_folder

VERSIONS_FOLDER = "workspace-versions"
"""The folder with a file for each session: the versions of the archives that its folder has."""


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
        return _create(self.root, session_id)

    async def remove(self, session_id: SessionId) -> None:
        """Remove the folder of a session and everything in it, if there is one.

        Symbolic links are not followed.

        Raises:
            StoreUnavailable: a part of it cannot be removed.
        """
        folder = self.root / session_id
        if session_id in {"", ".", ".."} or folder.parent != self.root:
            return  # no id of a session
        await asyncio.to_thread(_remove, folder)


class TaskFolders:
    """One folder per task in `root`, named `<session_id>.<task_id>`, with mode 700."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, task: Task) -> str:
        """Return the folder of a task, which need not exist."""
        return str(self.root / _folder_name(task))

    def create(self, task: Task) -> str:
        """Return the folder of a task.

        Raises:
            StoreUnavailable: it cannot be created.
        """
        return _create(self.root, _folder_name(task))

    def contains(self, folder: str, session_id: SessionId) -> bool:
        """Return True for the folder of a task of a session."""
        parent, _, name = folder.rpartition("/")
        return parent == str(self.root) and name.rpartition(".")[0] == session_id

    def list_of_session(self, session_id: SessionId) -> list[str]:
        """Return the folders of the tasks of a session, also of interrupted worktrees."""
        try:
            names = {re.sub(r"(\.json)?(\.new)?$", "", entry.name) for entry in self.root.iterdir()}
        except FileNotFoundError:
            return []
        found = (str(self.root / name) for name in sorted(names))
        return [folder for folder in found if self.contains(folder, session_id)]

    async def remove(self, session_id: SessionId) -> None:
        """Remove the folders of the tasks of a session. Symbolic links are not followed.

        Raises:
            StoreUnavailable: a part of them cannot be removed.
        """
        for folder in await asyncio.to_thread(self.list_of_session, session_id):
            await asyncio.to_thread(_remove, Path(folder))


class Workspaces:
    """Chooses the workspace of a task.

    It is the folder that the task names, the folder of the session, or a folder for this task
    alone.

    Args:
        home: the home folder of Larkspur.
        worktrees: makes copies of git repositories.
        root: the parent of the session folders; None for the home folder.
        remove_changes: removes the recorded changes of a session. Blocks.
    """

    def __init__(
        self,
        home: Path,
        worktrees: Worktrees,
        root: Path | None = None,
        *,
        remove_changes: Callable[[SessionId], None] = lambda _: None,
    ) -> None:
        self._remove_changes = remove_changes
        self._home = home
        # commands are given folders whose paths pass no symbolic link
        self.root = (root or home).resolve()
        self.worktrees = worktrees
        self.folders = SessionFolders(self.root / "workspaces")
        self.task_folders = TaskFolders(self.root / "task-folders")
        self.worktree_folders = TaskFolders(self.root / "worktrees")
        self.homes = SessionFolders(self.root / "session-homes")
        self.files = SessionFolders(self.root / "session-files")

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders whose entries belong to one session each."""
        task_roots = (self.task_folders.root, self.worktree_folders.root)
        return (self.folders.root, self.homes.root, self.files.root, *task_roots)

    def of_session(self, session_id: SessionId) -> list[Path]:
        """Return the folders of a session, which need not exist."""
        own = (self.folders, self.homes, self.files)
        tasks = (self.task_folders, self.worktree_folders)
        return [
            *(Path(each.path(session_id)) for each in own),
            *(Path(folder) for each in tasks for folder in each.list_of_session(session_id)),
        ]

    def find(self, task: Task, choice: WorkspaceChoice = "shared") -> str:
        """Return the workspace of a task. Of the managed ones only a worktree is created.

        Blocks; making a worktree takes seconds.

        Raises:
            InvalidRequest: the named workspace is not a folder, belongs to Larkspur itself, or is
                not a repository that supports worktrees.
            StoreUnavailable: a folder cannot be created.
        """
        named = task.spec.workspace
        if task.spec.own_folder:
            return self.task_folders.path(task)
        if choice == "worktree":
            workspace = self.worktree_folders.path(task)
            self.worktrees.create(named or self.folders.create(task.session_id), workspace)
            return workspace
        if not named:
            return self.folders.path(task.session_id)
        self.check(named)
        return named

    def check(self, named: str) -> None:
        """Raise InvalidRequest if a folder that a person named cannot be a workspace."""
        if not os.path.isdir(named):  # noqa: PTH112 - pathlib raises for a name too long
            raise InvalidRequest(
                f"The workspace {_shown(named)} is not a folder.",
                reason_code="workspace_no_folder",
                folder=_shown(named),
            )
        if real := _find_links(named):
            raise InvalidRequest(
                f"The workspace {_shown(named)} leads to {_shown(real)}: a symbolic"
                " link is in the place of a folder. Nothing was done there. To work there, name"
                " that path.",
                reason_code="workspace_link",
                folder=_shown(named),
                target=_shown(real),
            )
        if self._is_private(Path(named)):
            raise InvalidRequest(
                f"The workspace {_shown(named)} belongs to Larkspur itself.",
                reason_code="workspace_private",
                folder=_shown(named),
            )

    def create(self, task: Task, choice: WorkspaceChoice = "shared") -> str:
        """Create the workspace of a task, unless it exists, and its folders for files.

        Returns and raises the same as `find`.
        """
        workspace = self.find(task, choice)
        if task.spec.own_folder:
            self.task_folders.create(task)
        elif choice != "worktree" and not task.spec.workspace:
            self.folders.create(task.session_id)
        self._create_file_folders(task.session_id, workspace)
        return workspace

    def file_folders(self, session_id: SessionId, workspace: str) -> FileFolders:
        """Return the folders of a session for files.

        Files that people sent are in the workspace if that belongs to the session or one of its
        subtasks, else in the home folder. A worktree also leaves them there: its files belong to a
        repository.
        """
        own = self.folders.path(session_id)
        is_own = workspace == own or self.task_folders.contains(workspace, session_id)
        folder = Path(workspace) if is_own else self.files.root / session_id
        read_only: tuple[str, ...] = ()
        if self.worktree_folders.contains(workspace, session_id):
            read_only = tuple(filter(None, [self.worktrees.objects(workspace)]))
        return FileFolders(str(folder / "input"), str(Path(workspace) / "output"), read_only)

    def _create_file_folders(self, session_id: SessionId, workspace: str) -> None:
        folders = self.file_folders(session_id, workspace)
        if not folders.are_together:
            self.files.create(session_id)
        made = folders[:2] if folders.are_together else (folders.input,)
        for folder in map(Path, made):
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
        for folder in await asyncio.to_thread(self.worktree_folders.list_of_session, session_id):
            await self._remove_worktree(folder)
        for folders in (self.folders, self.task_folders, self.homes, self.files):
            await folders.remove(session_id)
        await asyncio.to_thread(self._remove_changes, session_id)
        versions = self.root / VERSIONS_FOLDER / session_id
        if versions.is_file() and versions.parent.name == VERSIONS_FOLDER:
            await asyncio.to_thread(versions.unlink, missing_ok=True)

    def list_empty(self, before: float, /) -> list[SessionId]:
        """Return the sessions whose folders have no files and are older than a time. Blocks.

        `before` is in seconds since 1970. Folders that cannot be read are left out.
        """
        names: set[str] = set()
        for root in (self.folders.root, self.files.root):
            with contextlib.suppress(OSError), os.scandir(root) as entries:
                names.update(entry.name for entry in entries if _is_empty(entry.path, before))
        return [SessionId(name) for name in sorted(names)]

    def remove_empty(self, session_id: SessionId, /) -> bool:
        """Remove the folders of a session that have no files; return whether there were any.

        Blocks. A file that is written at the same moment is never removed.
        """
        roots = (self.folders.root, self.files.root)
        return sum(_remove_empty(root / session_id) for root in roots) > 0

    async def remove_worktree(self, task: Task, /) -> None:
        """Remove the worktree of a task and its branch, which stays if somebody has changed it.

        Raises:
            StoreUnavailable: a part of it cannot be removed.
        """
        await self._remove_worktree(self.worktree_folders.path(task))

    async def _remove_worktree(self, folder: str) -> None:
        await asyncio.to_thread(self.worktrees.release, folder)
        await asyncio.to_thread(_remove, Path(folder))

    def _is_private(self, folder: Path) -> bool:
        """Return True for a path in the home folder or of sessions, except their workspaces."""
        try:
            for root in (self.folders.root, self.task_folders.root, self.worktree_folders.root):
                if root.exists() and folder.parent.samefile(root):
                    return False
            private = [self._home, *(root for root in self.roots if root.exists())]
            return any(
                above.samefile(each) for above in (folder, *folder.parents) for each in private
            )
        except FileNotFoundError:
            return False  # there is no home folder, or the workspace is gone


def _shown(folder: str) -> str:
    return escape_invisible(truncate(folder, 200))


def _find_links(folder: str) -> str:
    try:
        return find_links(os.path.normpath(folder))
    except OSError as error:
        reason = error.strerror
        raise InvalidRequest(
            f"The workspace {_shown(folder)}: {reason}.",
            reason_code="workspace_unusable",
            folder=_shown(folder),
            detail=reason or "",
        ) from error


_FILE_FOLDERS = ("input", "output")


def _is_empty(folder: str, before: float) -> bool:
    """Return True for an old folder with nothing but empty folders for files."""
    try:
        with open_folder(folder) as opened:
            if os.fstat(opened).st_mtime >= before:
                return False
            return all(
                name in _FILE_FOLDERS and _is_bare(name, opened) for name in names_in(opened)
            )
    except OSError:
        return False


def _is_bare(name: str, parent: int) -> bool:
    """Return True if there is nothing in a folder; raises OSError for a link."""
    with open_folder(name, parent) as folder:
        return not names_in(folder)


def _remove_empty(folder: Path) -> bool:
    # rmdir refuses a folder that is not empty, and a link
    with contextlib.suppress(OSError), open_folder(str(folder)) as opened:
        for name in _FILE_FOLDERS:
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=opened)
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def _folder_name(task: Task) -> str:
    return f"{task.session_id}.{task.id}"


def _create(root: Path, name: str) -> str:
    folder = root / name
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"{folder} cannot be created: {error.strerror}.") from error
    return str(folder)


def _remove(folder: Path) -> None:
    """Remove a folder and everything in it, if there is one.

    Raises:
        StoreUnavailable: a part of it cannot be removed.
    """
    if not os.path.lexists(folder):
        return
    try:
        remove_tree(folder)
    except OSError as error:
        raise StoreUnavailable(f"{folder} cannot be removed: {error.strerror}.") from error


def remove_tree(folder: Path) -> None:
    """Remove a folder and everything in it, or a link.

    Symbolic links are not followed, even if they replace a folder meanwhile: files that a command
    may change are reached from open folders only. Folders may be nested to any depth.

    Raises:
        OSError: a part of it cannot be removed.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    with _writable(str(folder)) as opened:
        _empty(opened)
    folder.rmdir()


def _empty(top: int) -> None:
    """Remove everything in an open folder."""
    pending = names_in(top)
    while pending:
        name = pending.pop()
        if _is_unlinked(name, top):
            continue
        with _writable(name, top) as folder:
            for child in names_in(folder):
                if not _is_unlinked(child, folder):
                    # moved up instead of entered: two folders are open at a time, at any depth
                    moved = f".removed-{secrets.token_hex(8)}"
                    with _writable(child, folder):
                        os.rename(child, moved, src_dir_fd=folder, dst_dir_fd=top)
                    pending.append(moved)
        os.rmdir(name, dir_fd=top)


def _is_unlinked(name: str, parent: int) -> bool:
    """Remove an entry of an open folder unless it is a folder; return True if it is gone."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            return False
        os.unlink(name, dir_fd=parent)
    return True


@contextlib.contextmanager
def _writable(name: str, parent: int | None = None) -> Iterator[int]:
    """Open a folder and take the right to change it, which a tool may have given up."""
    try:
        with open_folder(name, parent):
            pass
    except PermissionError:
        try:
            os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        except NotImplementedError as error:  # a link by now, or a C library that cannot tell
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP)) from error
    with open_folder(name, parent) as opened:
        os.fchmod(opened, 0o700)
        yield opened
