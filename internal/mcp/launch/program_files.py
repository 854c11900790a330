"""The files that a program is made of: interpreters, environments, targets of links."""

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from internal.mcp.launch.shims import resolve_shim

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives")
"""Paths that every isolated command sees; the folders in / link to the ones in /usr."""
_MAX_LINKS = 40
_MAX_HEAD_BYTES = 1_024
_MAX_ENVIRONMENT_FILES = 5_000
_EXEC_LINE = re.compile(r"""'''exec' (?P<program>"[^"]+"|'[^']+'|\S+) """)
"""The second line of a script whose interpreter has a path too long for `#!`."""
_SIBLINGS = {"uvx": "uv"}
"""Programs that execute another one of their own folder."""
_SCRIPTS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts"})
_PYTHON = re.compile(r"python[0-9.]*")


_PERSONAL = (".local/bin", ".cargo/bin", ".bun/bin", ".local/share/pnpm")
"""Folders for programs of one person, whether or not the PATH of a service has them."""


def search_path(environ: Mapping[str, str]) -> str:
    """Return the PATH of a person, with the folders in which people install programs."""
    home = Path(environ.get("HOME") or Path.home())
    given = environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys([*given, *(str(home / one) for one in _PERSONAL)]))


class ProgramFiles:
    """Collects the paths that must be readable in addition to the default view of a command.

    Args:
        readable: absolute paths that the command sees in addition to the programs of the machine.
        path: the PATH of the command.
        own_path: the PATH of the person, in which programs are looked up that `path` lacks.
        home: the home folder of the person, which is never made readable as a whole.
    """

    def __init__(self, readable: Iterable[str], *, path: str, own_path: str, home: Path) -> None:
        self._seen = [_normal(Path(each)) for each in (*_SYSTEM, *readable)]
        self._added: list[Path] = []
        self._examined: set[Path] = set()
        self._path, self._own_path = path, own_path
        self._too_much = {Path("/"), home, home / ".local"}
        self.missing: list[str] = []
        """Programs that are in neither PATH."""

    @property
    def path(self) -> str:
        """The PATH that the command needs."""
        return self._path

    @property
    def added(self) -> tuple[str, ...]:
        """The paths to make readable, without paths inside of others."""
        added = sorted(self._added)
        return tuple(str(path) for path in added if not any(one in path.parents for one in added))

    def add_program(self, name: str, *, extend_path: bool = False) -> str:
        """Add a program with all that it needs. Return how the command can name it.

        With `extend_path` its folder is added to PATH, since something else names the program.
        """
        found = shutil.which(name, path=self._path)
        if found is not None:
            self._add_executable(Path(found))
            return name
        found = shutil.which(name, path=self._own_path)
        if found is None:
            self.missing.append(name)
            return name
        program = _without_link(_normal(resolve_shim(Path(found))))
        if extend_path:
            self._path = f"{program.parent}:{self._path}"
        self._add_executable(program)
        return str(program)

    def add_interpreter(self, program: Path) -> None:
        """Add a program that others look up by its name, after all in PATH."""
        self._add_executable(program)
        self._path = f"{self._path}:{program.parent}"

    def add_argument(self, path: Path) -> None:
        """Add an existing path that is an argument; a script comes with its folder."""
        is_script = path.suffix in _SCRIPTS and path.is_file()
        self._require(path, path.parent if is_script else path)

    def _add_executable(self, path: Path) -> None:
        if path in self._examined or len(self._examined) > _MAX_LINKS:
            return
        self._examined.add(path)
        prefix = None if _is_alone(path) else _prefix(path)
        self._require(path, prefix or path)
        sibling = path.with_name(_SIBLINGS.get(path.name, path.name))
        if sibling.exists():
            self._require(sibling, prefix or sibling)
        if prefix and (prefix / "pyvenv.cfg").is_file():
            self._add_environment(prefix)
        elif path.is_symlink() and _PYTHON.fullmatch(path.name):
            # Python finds its library from the target of the link
            self._add_executable(_target(path))
        for word in _interpreters(path):
            self.add_program(word, extend_path="/" not in word)

    def _add_environment(self, prefix: Path) -> None:
        """Add the references of a Python virtual environment: its interpreter, links, paths."""
        for line in (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
            key, _, folder = map(str.strip, line.partition("="))
            if key == "home":
                self._require(Path(folder), Path(folder).parent)
        python = prefix / "bin" / "python"
        for _ in range(_MAX_LINKS):
            if not python.is_symlink():
                break
            python = _target(python)
            if prefix not in python.parents:
                self._add_executable(python)
                break
        for path in _references(prefix):
            self._require(path, _cache(path) or path)

    def _require(self, path: Path, grant: Path) -> None:
        """Make a path readable, with the targets of the symbolic links on the way to it.

        `grant` is the path itself or a folder above it.
        """
        for _ in range(_MAX_LINKS):
            path, grant = _normal(path), _normal(grant)
            root = next((one for one in self._seen if path.is_relative_to(one)), None)
            if root is None:
                root = path if grant in self._too_much else grant
                if root in self._too_much:
                    return
                self._seen.append(root)
                self._added.append(root)
            link = _first_link(root, path)
            if link is None:
                return
            path = _target(link) / path.relative_to(link)
            grant = _prefix(path) or path


def _normal(path: Path) -> Path:
    """Return an absolute path without `..`, with the links in it."""
    return Path(os.path.normpath(path.absolute()))


def _target(link: Path) -> Path:
    return _normal(link.parent / link.readlink())


def _without_link(program: Path) -> Path:
    """Return the script that a link leads to, if Node looks for its packages beside the script."""
    target = program.resolve()
    leads_away = "node_modules" in target.parts and "node_modules" not in program.parts
    return target if leads_away and _prefix(program) is None else program


def _first_link(root: Path, path: Path) -> Path | None:
    """Return the first symbolic link below a folder on the way to a path.

    The root itself is mounted at the target of its links.
    """
    ways = [path, *path.parents]
    below = ways[: ways.index(root)]
    return next((each for each in reversed(below) if each.is_symlink()), None)


def _prefix(program: Path) -> Path | None:
    """Return the installation that a program belongs to, None if it stands alone."""
    packages = [each for each in program.parents if each.name == "node_modules"]
    if packages:
        return packages[-1]
    prefix = program.parent.parent
    if program.parent.name != "bin":
        return None
    library = prefix / "lib"
    if (prefix / "pyvenv.cfg").is_file() or (library / "node_modules").is_dir():
        return prefix
    return prefix if any(library.glob("python3*/os.py")) else None


def _is_alone(program: Path) -> bool:
    """Return True for a program that needs no file of the installation that it is in.

    A script needs its interpreter's, Python its library, and others may need shared libraries.
    """
    if _head(program)[0].startswith("#!") or _PYTHON.fullmatch(program.name):
        return False
    library = program.resolve().parent.parent / "lib"
    return not any(library.glob("*.so*"))


def _head(path: Path) -> tuple[str, str]:
    """Return the first two lines of a file. Reads only its beginning."""
    try:
        with path.open("rb") as file:
            first, _, rest = file.read(_MAX_HEAD_BYTES).decode(errors="replace").partition("\n")
    except OSError:
        return "", ""
    return first, rest.partition("\n")[0]


def _interpreters(path: Path) -> Iterator[str]:
    """Yield the program that executes a script, and for env(1) and sh(1) the one that they do."""
    first, second = _head(path)
    words = first.removeprefix("#!").split()
    if not first.startswith("#!") or not words:
        return
    yield words[0]
    if Path(words[0]).name == "env":
        names = (word for word in words[1:] if not word.startswith("-") and "=" not in word)
        yield from list(names)[:1]
    elif match := _EXEC_LINE.match(second):
        yield from shlex.split(match["program"])[:1]


def _references(prefix: Path) -> Iterator[Path]:
    """Yield the paths outside of a virtual environment to which its packages refer."""
    count = 0
    for packages in (prefix / "lib").glob("python3*/site-packages"):
        for folder, _, files in os.walk(packages):
            for path in (Path(folder, name) for name in files):
                count += 1
                if count > _MAX_ENVIRONMENT_FILES:
                    return
                if path.is_symlink():
                    yield path.resolve()
                elif path.suffix == ".pth" and path.parent == packages:
                    yield from _folders_of(path)


def _folders_of(file: Path) -> Iterator[Path]:
    """Yield the folders that a `*.pth` file adds, such as one of an editable installation."""
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("/") and Path(line).is_dir():
            yield Path(line)


def _cache(path: Path) -> Path | None:
    """Return the cache folder that contains a file, None if there is none: caches are tagged."""
    return next((each for each in path.parents if (each / "CACHEDIR.TAG").is_file()), None)
