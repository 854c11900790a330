"""The files of a workspace that agents and programs trust later, compared around a command.

A command cannot change those that exist where the sandbox protects them, but it can create others:
a hook of git, an `AGENTS.md`. Nothing in Larkspur uses them unasked, but a person's git or another
agent might, so they are reported.
"""

import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from internal.agent.domain.permissions.paths import CONFIGURATION_NAMES
from internal.agent.domain.text import escape_invisible, truncate
from internal.agent.ports.tools import CallContext
from internal.tools.untrusted_files import UntrustedFiles

logger = logging.getLogger(__name__)

MAX_FILES = 500
"""Files below one name that are compared one by one; of more, only their folders are."""
MAX_REPORTED = 10

_MAX_DEPTH = 6
_MAX_NAME_CHARS = 120
_MAX_CONFIG_BYTES = 65_536
_SAMPLE = re.compile(r"/\.git/hooks/[^/]+\.sample$")  # git creates them, and runs none
_GIT_CONFIG = re.compile(r"/\.git/config$")
_BARE_REPOSITORY = ("HEAD", "config", "hooks")
"""With these, git takes a folder for a repository."""

# What `git init` and `git clone` write. Every other setting may name a program.
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
    """The state of these files in some folders. Links are not followed, and no file is opened.

    Args:
        folders: absolute paths, the working folder first.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = tuple(folders)
        self._files = _all_files(self._folders)

    def report(self, untrusted: UntrustedFiles) -> list[str]:
        """Return the files that are new or different now, whatever process changed them.

        Instruction files among them become untrusted. Names are relative to the working folder;
        invisible characters are escaped. Blocks.
        """
        now = _all_files(self._folders)
        changed = [path for path, identity in now.items() if self._files.get(path) != identity]
        untrusted.record(changed)
        return [self._name(path) for path in changed if not _is_plain_git_config(path)]

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
    """Return a line about changed files for the model, "" for none."""
    if not names:
        return ""
    more = f" and {len(names) - MAX_REPORTED} more" if len(names) > MAX_REPORTED else ""
    listed = ", ".join(names[:MAX_REPORTED])
    return (
        f"[created or changed while the command ran: {listed}{more}. Agents or programs that people"
        " run here may trust it: tell them]"
    )


def _all_files(folders: Iterable[str]) -> dict[str, _Identity]:
    return {path: identity for folder in folders for path, identity in _files(folder)}


def _files(folder: str) -> Iterator[tuple[str, _Identity]]:
    """Yield the files below a folder that are trusted later.

    These are also `.git` where it is a file or a link, and what makes the folder itself a
    repository for git.
    """
    git = _identity(f"{folder}/.git")
    if git is not None and not stat.S_ISDIR(git[0]):
        yield f"{folder}/.git", git
    is_folder = git is not None and stat.S_ISDIR(git[0])
    names = [each for each in CONFIGURATION_NAMES if is_folder or not each.startswith(".git/")]
    is_bare = _identity(f"{folder}/HEAD") is not None
    for name in (*names, *(_BARE_REPOSITORY if is_bare else ())):
        found: list[tuple[str, _Identity]] = []
        _collect(f"{folder}/{name}", 0, found)
        yield from found


def _collect(path: str, depth: int, found: list[tuple[str, _Identity]]) -> None:
    """Add a file, or the files below a folder; of a large folder only the folder itself.

    The times of a folder change with its entries, so that no crowd of files hides a new one.
    """
    identity = _identity(path)
    if identity is None or _SAMPLE.search(path):
        return
    if not stat.S_ISDIR(identity[0]):
        found.append((path, identity))
        return
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry, _ in zip(entries, range(MAX_FILES), strict=False)]
    except OSError:
        names = []
    if len(names) == MAX_FILES or len(found) >= MAX_FILES or depth == _MAX_DEPTH:
        found.append((path, identity))
    for name in names if len(found) < MAX_FILES and depth < _MAX_DEPTH else ():
        _collect(f"{path}/{name}", depth + 1, found)


def _identity(path: str) -> _Identity | None:
    """Return the mode, place, size and times of a file; None if there is none."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return status.st_mode, status.st_dev, status.st_ino, status.st_size, *times


def _is_plain_git_config(path: str) -> bool:
    """Return True for a configuration of git that names no program."""
    if not _GIT_CONFIG.search(path):
        return False
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as opened:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return False
            content = opened.read(_MAX_CONFIG_BYTES + 1)
    except OSError:
        return False
    lines = content.splitlines()
    return len(content) <= _MAX_CONFIG_BYTES and all(map(_PLAIN_SETTINGS.fullmatch, lines))
