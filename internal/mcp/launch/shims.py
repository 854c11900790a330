"""The programs behind the shims of version managers.

A shim is a small program in a folder of PATH that starts the chosen version of another one. It
does so with the help of the version manager, which isolated commands do not see.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from internal.mcp.private_files import read_start

_INSTALLATIONS = (
    *("versions/*/bin", "installs/*/*/bin"),
    *("tools/image/*/*/bin", "tools/image/packages/*/bin", "tools/image/packages/@*/*/bin"),
)
"""The folders of programs below the folder of a version manager: of pyenv and its relatives, of
asdf and mise, of volta."""
_MAX_FILE_CHARS = 20_000
_VERSION = re.compile(r"[0-9]+(?:\.[0-9A-Za-z]+)*")


def resolve_shim(program: Path) -> Path:
    """Return the program that a shim starts by default, otherwise the given one. Blocks.

    Without a chosen version it is the newest that is installed.
    """
    root = _root(program)
    if root is None:
        return program
    found = [
        folder / program.name
        for pattern in _INSTALLATIONS
        for folder in root.glob(pattern)
        if (folder / program.name).is_file()
    ]
    if not found:
        return program
    chosen = [*_chosen(program, root)]

    def preference(path: Path) -> tuple[int, list[int]]:
        version = path.parent.parent.name
        place = chosen.index(version) if version in chosen else len(chosen)
        return -place, [int(part) for part in re.findall(r"\d+", version)]

    return max(found, key=preference)


def _root(program: Path) -> Path | None:
    """Return the folder of the version manager of a shim."""
    folder = program.parent
    if folder.name == "shims":
        return folder.parent
    if folder.name == "bin" and (folder.parent / "tools" / "image").is_dir():
        return folder.parent
    return None


def _chosen(program: Path, root: Path) -> Iterator[str]:
    """Yield the versions that are chosen, the most decisive first."""
    yield from _VERSION.findall(read_start(root / "version", _MAX_FILE_CHARS))
    yield from _VERSION.findall(read_start(Path.home() / ".tool-versions", _MAX_FILE_CHARS))
    if not program.is_symlink():
        for line in read_start(program, _MAX_FILE_CHARS).splitlines():
            if line.startswith("# asdf-plugin:"):
                yield from line.split()[3:]
