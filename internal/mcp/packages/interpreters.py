"""The interpreters of Python on a machine, for packages that need a certain version."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from internal.mcp.launch.shims import resolve_shim

MAX_INTERPRETERS = 12
_NAME = re.compile(r"python3\.[0-9]+")
_VERSION = re.compile(r"3\.([0-9]+)")
_OLDEST = 10
"""The minor version that the SDK of servers needs at least."""
_FOLDERS = (".local/share/uv/python/*/bin", ".pyenv/versions/*/bin")


def find_pythons(path: str, home: Path) -> list[Path]:
    """Return the interpreters in the folders of a PATH and in uv and pyenv, newest first.

    There is at most one for each minor version. Blocks.
    """
    found: dict[int, Path] = {}
    for candidate in _candidates(path, home):
        version = _VERSION.search(candidate.name)
        number = int(version[1]) if version else 0
        if number >= _OLDEST and number not in found and os.access(candidate, os.X_OK):
            found[number] = candidate
    return [found[number] for number in sorted(found, reverse=True)][:MAX_INTERPRETERS]


def _candidates(path: str, home: Path) -> Iterator[Path]:
    folders = [Path(one) for one in path.split(os.pathsep) if one.startswith("/")]
    for folder in folders:
        yield from (resolve_shim(each) for each in _pythons(folder))
    for pattern in _FOLDERS:
        for folder in sorted(home.glob(pattern)):
            yield from _pythons(folder)


def _pythons(folder: Path) -> Iterator[Path]:
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return
    yield from (each for each in found if _NAME.fullmatch(each.name))
