"""The changes in a folder since the last commit of its repository."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from internal.git.private_repository import private_repository
from internal.git.process import GitFailed, run_git

TIMEOUT_SECONDS = 20.0
MAX_DIFF_BYTES = 16 * 1024 * 1024
_MAX_COPIED_BYTES = 256 * 1024 * 1024
_PLACES = ("index", "objects", "info/exclude")
_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
_OTHERS = ("ls-files", "--others", "--exclude-standard")


def uncommitted_changes(folder: str) -> str | None:
    """Return the changes below a folder as a diff, then the new files as `@@ NAME`. Blocks.

    Submodules and repositories inside of the repository are not entered. The answer is None where
    there is no repository with a commit, or it cannot be read in `TIMEOUT_SECONDS`.
    """
    try:
        # another user's repository as well: nothing that it configures runs
        find = ("-c", "safe.directory=*", "rev-parse", "--path-format=absolute")
        named = (part for place in _PLACES for part in ("--git-path", place))
        found = _run(*find, "--show-toplevel", *named, folder=folder).splitlines()
        top, index, objects, exclude = found
        head = _run(*find, "--verify", "HEAD^{commit}", folder=folder).strip()
        with private_repository(top, objects, head) as own:
            _copy(exclude, Path(own["GIT_DIR"], "info", "exclude"))
            copied = Path(own["GIT_DIR"], "index")
            # Its times save reading every file. Git reads a file again that is as new as the index:
            # with a newer copy it would take a change in the second of the commit for none.
            _copy(index, copied)
            with suppress(GitFailed):
                return _describe(folder, head, own)
            # it needs a second file, as a split index does
            copied.unlink(missing_ok=True)
            _run("read-tree", head, folder=folder, variables=own)
            return _describe(folder, head, own)
    except (GitFailed, OSError, ValueError):
        return None


def _describe(folder: str, head: str, own: dict[str, str]) -> str:
    shown = _run(*_DIFF, head, "--", ".", folder=folder, variables=own)
    new = _run(*_OTHERS, "--", ".", folder=folder, variables=own)
    names = [f"@@ {name}" for name in new.splitlines()]
    return "\n".join([shown.rstrip("\n"), *names]).strip("\n")


def _copy(source: str, target: Path) -> None:
    """Copy a regular file with its time of change, if there is one."""
    with suppress(OSError):
        number = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(number)
            if stat.S_ISREG(status.st_mode):
                target.parent.mkdir(exist_ok=True)
                with os.fdopen(number, "rb", closefd=False) as file:
                    target.write_bytes(file.read(_MAX_COPIED_BYTES))
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(number)


def _run(*arguments: str, folder: str, variables: dict[str, str] | None = None) -> str:
    output = run_git(
        *arguments,
        folder=folder,
        variables=variables,
        max_bytes=MAX_DIFF_BYTES,
        timeout_seconds=TIMEOUT_SECONDS,
    )
    return output.decode("utf-8", "replace")
