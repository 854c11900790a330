"""The files of a workspace that agents and programs trust later, compared around a command.

A command cannot change the files that the sandbox protects, but it can create others: a repository
with hooks, an `AGENTS.md`. Larkspur does not use them unasked, but a person's git or another agent
might, so they are reported.
"""

import logging
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from internal.agent.domain.permissions.configuration_names import GIT_CONFIGURATION
from internal.agent.domain.text import escape_invisible, truncate
from internal.agent.ports.tools import CallContext
from internal.open_files.paths import open_beneath, open_folder
from internal.tools.commands.configuration_search import ConfigurationSearch, FoundConfiguration

logger = logging.getLogger(__name__)

MAX_FILES = 500
"""Files below one name that are compared one by one; of more, only their folders are."""
MAX_REPORTED = 10

_MAX_DEPTH = 6
_MAX_NAME_CHARS = 120
_MAX_CONFIG_BYTES = 65_536
_PLACE = 3  # the part of an identity that is the same while the entries of a folder change
_SAMPLE = re.compile(
    r"(?:^|/)hooks/[^/]+\.sample$"  # git creates them, and runs none
    r"|(?:^|/)worktrees/[^/]+/(?!(?:commondir|config\.worktree|gitdir)$)"
)
_READ_BY_GIT = tuple(name for name in GIT_CONFIGURATION if name not in {"info", "modules"})
_GIT_CONFIG = re.compile(r"/\.git/(?:config|config\.worktree|commondir)$")
_OWN_FOLDER = b"."  # the content of `commondir` while a command runs, see `git_folders`

# Settings that `git init` and `git clone` write. Every other setting may name a program.
_PLAIN_SETTINGS = re.compile(
    rb"""
    \s* (?: [#;].* )? |
    \[core\] | \[init\] | \[user\] | \[(?:remote|branch)\ "[\w./-]+"\] |
    \s* (?: repositoryformatversion | filemode | bare | logallrefupdates | ignorecase
          | precomposeunicode | symlinks | name | email | fetch | merge
        ) \s* = [^\\"]* |
    \s* remote \s* = \s* [\w.-]+ \s* |
    \s* url \s* = \s* (?: https?:// | ssh:// | git@ | / ) [^\\"]*
    """,
    re.VERBOSE | re.IGNORECASE,
)

_Identity = tuple[int, ...]


class ConfigurationSnapshot:
    """The state of these files below some folders. Links are not followed, and no file is opened.

    Args:
        folders: absolute paths, the working folder first.
        search: finds the files.
    """

    def __init__(self, folders: Iterable[str], search: ConfigurationSearch) -> None:
        self._folders = tuple(folders)
        self._search = search
        self.found = {folder: search.search(folder) for folder in self._folders}
        """The repositories and configuration below each of the folders."""
        self._files = _all_files(self.found)

    def report(self) -> list[str]:
        """Return the files that are new or different now, no matter which process changed them.

        Names are relative to the working folder; invisible characters are escaped. If folders were
        made until there are too many, the first one that was not searched is named, with `/…`.
        Blocks.
        """
        found = {folder: self._search.search(folder) for folder in self._folders}
        now = _all_files(found)
        changed = [path for path, identity in now.items() if self._files.get(path) != identity]
        unread = [
            f"{folder}/{one.unread}/…"
            for folder, one in found.items()
            if one.unread and not self.found[folder].unread
        ]
        named = (path for path in changed if not self._is_plain_git_config(path))
        return [self._name(path) for path in (*named, *unread)]

    def _is_plain_git_config(self, path: str) -> bool:
        """Return True for a configuration of git that names no program."""
        found = next(each for each in self._folders if path.startswith(f"{each}/"))
        return bool(_GIT_CONFIG.search(path)) and _is_plain(found, path[len(found) + 1 :])

    def _name(self, path: str) -> str:
        name = path.removeprefix(f"{self._folders[0]}/")
        text = escape_invisible(name.encode("utf-8", "replace").decode())
        return truncate(text.replace("\n", "\\n").replace("\t", "\\t"), _MAX_NAME_CHARS)


def configuration_metadata(names: Sequence[str]) -> dict[str, Any]:
    """Return the part of the metadata of a call that names changed files."""
    return {"configuration": list(names[:MAX_REPORTED])} if names else {}


def log_changes(names: Sequence[str], call: CallContext) -> None:
    """Write changed files to the log, for commands whose result nobody may read."""
    if names:
        logger.warning(
            "a command changed files that configure agents or programs",
            extra={
                "session_id": call.session_id,
                "run_id": call.run_id,
                "files": list(names[:MAX_REPORTED]),
            },
        )


def describe_changes(names: Sequence[str]) -> str:
    """Return a line about changed files for the model, "" if there are none."""
    if not names:
        return ""
    more = f" and {len(names) - MAX_REPORTED} more" if len(names) > MAX_REPORTED else ""
    listed = ", ".join(names[:MAX_REPORTED])
    return (
        f"[created or changed while the command ran: {listed}{more}. Agents or programs that people"
        " run here may trust it: tell them]"
    )


def _all_files(found: Mapping[str, FoundConfiguration]) -> dict[str, _Identity]:
    files: dict[str, _Identity] = {}
    for folder, below in found.items():
        with suppress(OSError), open_folder(folder, follows_link=True) as opened:
            for git in below.repositories:
                _add_repository(opened, git, files, folder)
            for name in below.files:
                _add(opened, name, files, folder)
    return files


def _add_repository(root: int, git: str, files: dict[str, _Identity], folder: str) -> None:
    """Add a repository, and the files that git reads there; `folder` is its place in the result."""
    identity = _identity(root, git)
    if identity is None:
        return
    if not stat.S_ISDIR(identity[0]):
        files[f"{folder}/{git}"] = identity
        return
    is_named = git.rpartition("/")[2] == ".git"
    prefix = "" if git == "." else f"{git}/"
    files[f"{folder}/{git if is_named else f'{prefix}HEAD'}"] = identity[:_PLACE]
    for name in _READ_BY_GIT:
        _add(root, f"{prefix}{name}", files, folder)


def _add(root: int, path: str, files: dict[str, _Identity], folder: str) -> None:
    found: list[tuple[str, _Identity]] = []
    _collect(root, path, 0, found)
    files |= {f"{folder}/{name}": identity for name, identity in found}


def _collect(root: int, path: str, depth: int, found: list[tuple[str, _Identity]]) -> None:
    """Add a file, or the files below a folder; of a large folder only the folder itself.

    The times of a folder change with its entries, so that no crowd of files hides a new one.
    """
    identity = _identity(root, path)
    if identity is None or _SAMPLE.search(path):
        return
    if not stat.S_ISDIR(identity[0]):
        found.append((path, identity))
        return
    names: list[str] = []
    with suppress(OSError):
        opened = open_beneath(root, path.split("/"), os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(opened) as entries:
                names = [entry.name for entry, _ in zip(entries, range(MAX_FILES), strict=False)]
        finally:
            os.close(opened)
    if len(names) == MAX_FILES or len(found) >= MAX_FILES or depth == _MAX_DEPTH:
        found.append((path, identity))
    for name in names if len(found) < MAX_FILES and depth < _MAX_DEPTH else ():
        _collect(root, f"{path}/{name}", depth + 1, found)


def _identity(root: int, path: str) -> _Identity | None:
    """Return the mode, place, size and times of a file; None if there is none."""
    try:
        status = os.stat(path, dir_fd=root, follow_symlinks=False)
    except (OSError, ValueError):
        return None
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return status.st_mode, status.st_dev, status.st_ino, status.st_size, *times


def _is_plain(folder: str, name: str) -> bool:
    try:
        with open_folder(folder, follows_link=True) as root:
            file = open_beneath(root, name.split("/"), os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return False
            content = os.read(file, _MAX_CONFIG_BYTES + 1)
        finally:
            os.close(file)
    except OSError:
        return False
    lines = content.splitlines()
    if name.endswith("/commondir"):
        return lines == [_OWN_FOLDER]
    return len(content) <= _MAX_CONFIG_BYTES and all(map(_PLAIN_SETTINGS.fullmatch, lines))
