"""Paths and globs of the workspace, matched on their text alone.

Where a path really leads (links, mounts) is checked by the tool that opens it; a rule only decides
which paths need no approval. An allow glob is strict about spelling, a deny glob also matches every
other spelling of the path.
"""

import posixpath
import re
import unicodedata

from internal.agent.domain.permissions.configuration_names import CONFIGURATION_NAMES
from internal.agent.domain.permissions.globs import compile_glob
from internal.agent.domain.text import find_invisible, is_invisible
from internal.normal_forms.names import fold_name

MAX_PATH_CHARS = 4_096
"""No longer path can be opened, so a longer one is not matched against deny globs."""

PROTECTED_FOLDERS = (".git",)
"""Folders that no tool may change: git runs programs that are configured there."""


def normalize_path(path: str) -> str:
    """Return the path without `.`, empty segments and `a/..`. Lexical: links are not followed."""
    return posixpath.normpath(re.sub(r"/+", "/", path))


def allows_path(glob: str, path: str) -> bool:
    """Return True if an allow glob covers a path.

    A path with `..`, a backslash or an invisible character is never covered, and an absolute path
    only by an absolute glob.
    """
    if find_invisible(path) or "\\" in path or ".." in path.split("/"):
        return False
    if path.startswith("/") and not glob.startswith("/"):
        return False
    return bool(path) and compile_glob(normalize_path(glob)).matches(normalize_path(path))


def denies_path(glob: str, path: str, *, recursive: bool = False) -> bool | None:
    """Return True if a deny glob matches a path in any spelling, None if the path is too long.

    `..`, absolute paths, other letter case, equivalent Unicode characters and names that look the
    same all match: the tools open a file under each of them. With `recursive`, a folder above a
    denied path matches as well, because a search would descend into it.
    """
    if len(path) > MAX_PATH_CHARS:
        return None
    globs = {glob, fold_name(glob)}
    spellings = {path, fold_name(path), _fold(path), _plain(path)}
    return any(
        _denies_spelling(one, other, recursive=recursive) for one in globs for other in spellings
    )


def _denies_spelling(glob: str, path: str, *, recursive: bool) -> bool:
    path = re.sub(
        r"^(?:\.\./|\.\.$)+", "/", normalize_path(path.replace("\\", "/"))
    )  # may lead anywhere
    folded_glob = normalize_path(unicodedata.normalize("NFKC", glob).casefold())
    if compile_glob(folded_glob).matches(path.casefold(), tails=True):
        return True
    fixed = normalize_path(re.split(r"[*?\[]", glob, maxsplit=1)[0])
    return recursive and _is_above(path, fixed)


def is_protected(path: str) -> bool:
    """Return True if a path in any spelling is a protected folder or inside one."""
    segments = normalize_path(_plain(path).replace("\\", "/")).casefold().split("/")
    return not set(segments).isdisjoint(PROTECTED_FOLDERS)


def is_configuration(path: str) -> bool:
    """Return True if a path in any spelling is one of `CONFIGURATION_NAMES` or inside one."""
    folded = "/" + normalize_path(_plain(path).replace("\\", "/")).casefold() + "/"
    return any(f"/{name.casefold()}/" in folded for name in CONFIGURATION_NAMES)


def _fold(path: str) -> str:
    """Return the path as some file systems see it: no invisible characters, folded letters."""
    visible = "".join(char for char in path if char == " " or not is_invisible(char))
    return unicodedata.normalize("NFKC", visible)


def _plain(path: str) -> str:
    """Return the path as `_fold` does, with plain signs in place of signs that look the same."""
    return _fold(fold_name(path))


def _is_above(folder: str, path: str) -> bool:
    """Return True if an end of the folder is a beginning of the path."""
    if folder in {".", "/", ""}:
        return True
    folder, path = f"/{folder}/".casefold(), f"/{path}/".casefold()
    starts = (at for at, char in enumerate(folder) if char == "/" and at < len(folder) - 1)
    near = (at for at in starts if len(folder) - at <= len(path))
    return any(path.startswith(folder[at:]) for at in near)


def suggest_path_rule(tool: str, path: str) -> str:
    """Return the narrowest rule that allows the tool on this path, or "" if there is none."""
    glob = normalize_path(path)
    is_plain = (
        not re.search(r"[*?\[\]]", glob) and glob == glob.strip() and not glob.startswith("/")
    )
    return f"{tool}({glob})" if is_plain and allows_path(glob, path) else ""
