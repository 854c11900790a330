"""The folders and files of a workspace for people: a list, a search, a preview. Nothing is changed.

The methods block and follow no link.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from internal.agent.domain.errors import Conflict, NotFound
from internal.agent.ports.workspaces import TreeEntry, TreePage
from internal.open_files.paths import open_components, open_without_links, real_path
from internal.tools.protected_paths import ProtectedPaths
from internal.workspace_changes.change_log import shown_path
from internal.workspace_changes.contents import is_secret, read_file
from internal.workspace_changes.walk import FoundEntry, open_parent, walk

MAX_ENTRIES_OF_FOLDER = 2_000
MAX_FOUND = 200
MAX_PREVIEW_BYTES = 1_000_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_MAX_PATH_BYTES = 4_000


class OpenWorkspaceTree:
    """Lists and reads the files of workspaces.

    Args:
        protected: the files of Larkspur itself, which are not shown.
    """

    def __init__(self, protected: ProtectedPaths) -> None:
        self._protected = protected

    def entries(self, root: str, path: str) -> TreePage:
        """Return the entries of a folder, folders first. `path` "" is the workspace.

        Raises:
            NotFound: there is no such folder.
        """
        prefix = f"{path}/" if path else ""
        found: list[TreeEntry] = []
        protection = self._protected.protection(root)
        with _reported(path), _opened(root, _FOLDER) as top:
            folder = open_components(top, _parts(path), _FOLDER)
            try:
                real = real_path(folder)
                if protection.covers(real, os.fstat(folder)):
                    raise NotFound(
                        f"{path} is not in the workspace.",
                        reason_code="not_in_workspace",
                        path=path,
                    )
                with os.scandir(folder) as listed:
                    for entry in listed:
                        try:
                            status = entry.stat(follow_symlinks=False)
                            if protection.covers(f"{real}/{entry.name}", status):
                                continue
                        except OSError:
                            continue
                        if (shown := _entry(prefix + entry.name, status)) is not None:
                            found.append(shown)
            finally:
                os.close(folder)
        found.sort(key=lambda each: (each.kind != "folder", each.path.casefold(), each.path))
        is_complete = len(found) <= MAX_ENTRIES_OF_FOLDER
        return TreePage(tuple(found[:MAX_ENTRIES_OF_FOLDER]), is_complete)

    def search(self, root: str, text: str) -> TreePage:
        """Return the files whose paths contain a text, in any letter case.

        Folders that `walk` does not enter are not searched.

        Raises:
            NotFound: the workspace cannot be read.
        """
        wanted = text.casefold()
        found: list[TreeEntry] = []

        def visit(entry: FoundEntry) -> None:
            if wanted in entry.path.casefold() and len(found) <= MAX_FOUND:
                shown = _entry(entry.path, entry.status)
                if shown is not None:
                    found.append(shown)

        with _reported(""), _opened(root, _FOLDER) as top:
            report = walk(top, self._protected.protection(root), visit)
        is_complete = report.is_complete and len(found) <= MAX_FOUND
        return TreePage(tuple(found[:MAX_FOUND]), is_complete)

    def read(self, root: str, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            NotFound: there is no such file.
            Conflict: it is not shown: too large, or it holds secrets by its name.
        """
        _parts(path)
        protection = self._protected.protection(root)
        with (
            _reported(path),
            _opened(root, _FOLDER) as top,
            open_parent(top, path) as (folder, name),
        ):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            is_hidden = protection.covers(f"{real_path(folder)}/{name}", status)
            if is_hidden or not stat.S_ISREG(status.st_mode):
                raise NotFound(
                    f"{path} is no file of the workspace.",
                    reason_code="no_workspace_file",
                    path=path,
                )
            if is_secret(path):
                raise Conflict(
                    f"{path} holds secrets by its name: its content is not shown.",
                    reason_code="secret_file",
                    path=path,
                )
            content, _ = read_file(folder, name, MAX_PREVIEW_BYTES)
            if content is None:
                raise Conflict(
                    f"{path} is larger than {MAX_PREVIEW_BYTES // 1_000:,} KB.",
                    reason_code="preview_too_large",
                    path=path,
                    limit=MAX_PREVIEW_BYTES // 1_000,
                )
            return content


def _entry(path: str, status: os.stat_result) -> TreeEntry | None:
    shown = shown_path(path)
    if stat.S_ISDIR(status.st_mode):
        return TreeEntry(shown, "folder", is_readable=shown == path)
    if stat.S_ISLNK(status.st_mode):
        return TreeEntry(shown, "link", is_readable=False)
    if not stat.S_ISREG(status.st_mode):
        return None
    is_readable = shown == path and status.st_size <= MAX_PREVIEW_BYTES and not is_secret(path)
    return TreeEntry(shown, "file", status.st_size, is_readable)


def _parts(path: str) -> list[str]:
    """Return the names in a path.

    Raises:
        NotFound: it leads elsewhere, or is not a path.
    """
    parts = path.split("/") if path else []
    try:
        is_valid = len(path.encode()) <= _MAX_PATH_BYTES and "\0" not in path
    except UnicodeEncodeError:
        is_valid = False
    if not is_valid or any(part in {"", ".", ".."} for part in parts):
        raise NotFound("This is not a path of the workspace.", reason_code="no_workspace_path")
    return parts


@contextmanager
def _opened(root: str, flags: int) -> Iterator[int]:
    folder = open_without_links(root, flags)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def _reported(path: str) -> Iterator[None]:
    """Report a file or folder that cannot be opened as not found."""
    try:
        yield
    except OSError as error:
        what = path or "The workspace"
        raise NotFound(
            f"{what} cannot be opened: {error.strerror or error}.",
            reason_code="path_unreadable",
            path=path,
            detail=error.strerror or str(error),
        ) from error
