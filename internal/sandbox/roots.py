"""The roots of a command: the files and folders that it is given, each as a thing, not as a name.

Commands may change folders in which other roots are: a session works in a folder of another one, a
server of MCP writes beside its files. So a name may lead elsewhere by the time it is used. A root
is the file or folder that its path, without symbolic links, names when the command is prepared. A
mount is compared with it by device and inode; a rule of Landlock is made from an open descriptor.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from internal.agent.domain.errors import ToolError
from internal.open_files.paths import O_PATH, destination, open_without_links

_FileId = tuple[int, int]


class Root(NamedTuple):
    """A file or folder that a command is given at `path`; `real` is its path without links."""

    path: str
    real: str
    device: int
    inode: int


def find_root(path: str, links: Mapping[str, str]) -> Root | None:
    """Return the thing at an absolute normal path; None if nothing is there.

    Args:
        path: the path at which a command sees it.
        links: the paths that pass symbolic links, with the place to which each must lead.

    Raises:
        ToolError: the path leads elsewhere.
    """
    real = links.get(path, path)
    now = destination(path) if path in links else real
    try:
        if now == real:
            # The status of this descriptor: a name may be exchanged between two calls.
            opened = open_without_links(real, O_PATH)
            try:
                status = os.fstat(opened)
            finally:
                os.close(opened)
            return Root(path, real, status.st_dev, status.st_ino)
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
            return None
        now = destination(path)
    raise ToolError(
        f"{path} leads to {now}: a symbolic link is in the place of a folder that a command was to"
        " be given, so it was not started"
    )


class PrivatePlaces:
    """The files and folders of Larkspur itself, identified by device and inode. No root is in them.

    Args:
        hidden: files and folders, which need not exist.
        session_folders: folders whose entries belong to one session each; such an entry and its
            contents may be a root though the folder is hidden.
    """

    def __init__(self, hidden: Iterable[Path] = (), session_folders: Iterable[Path] = ()) -> None:
        self.hidden = [str(path) for path in hidden]
        self._session_folders = [str(path) for path in session_folders]

    def check(self, roots: Iterable[Root]) -> None:
        """Check that no root is private.

        Raises:
            ToolError: one is.
        """
        hidden, sessions = frozenset(_ids(self.hidden)), frozenset(_ids(self._session_folders))
        if not hidden:
            return
        for root in roots:
            if _is_private(root, hidden, sessions):
                raise ToolError(f"{root.path} belongs to Larkspur itself: no command sees it")


def _is_private(root: Root, hidden: frozenset[_FileId], sessions: frozenset[_FileId]) -> bool:
    if (root.device, root.inode) in hidden:
        return True
    for found in _ids(str(parent) for parent in Path(root.real).parents):
        if found in sessions:
            return False
        if found in hidden:
            return True
    return False


def _ids(paths: Iterable[str]) -> Iterator[_FileId]:
    for path in paths:
        try:
            status = os.stat(path)  # noqa: PTH116 - takes half the time of pathlib
        except OSError:
            continue
        yield status.st_dev, status.st_ino
