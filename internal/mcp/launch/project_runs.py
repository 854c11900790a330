"""Command lines that run a program in the environment of a project, such as `uv run server.py`.

uv writes to the environment and the project at each start. An isolated command cannot; it starts
the program of the environment that is there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_DIRECTORIES = ("--directory", "--project")
_VALUED = ("--with", "-w", "--python", "-p", "--extra", "--group", "--package", "--env-file")


class ProjectRun(NamedTuple):
    """A program of the project in `folder`.

    `argv` starts the program, with the last `kept` arguments of the command line after it. It is
    empty if the project has no environment yet.
    """

    folder: Path
    argv: tuple[str, ...]
    kept: int = 0


def find_project_run(command: str, args: Sequence[str], folder: str) -> ProjectRun | None:
    """Return the program that `uv run` starts in an existing project, None otherwise. Blocks.

    Args:
        command: the program.
        args: its arguments.
        folder: the working folder of the command, "" for its private one.
    """
    if Path(command).name != "uv" or "run" not in args:
        return None
    begin = args.index("run")
    named, rest = _split((*args[:begin], *args[begin + 1 :]))
    project = Path(folder, named) if named or folder else None
    if project is None or not rest or not (project / "pyproject.toml").is_file():
        return None
    programs = project / ".venv" / "bin"
    if not (programs / "python").exists():
        return ProjectRun(project, ())
    kept = len(rest) - 1
    if rest[0].endswith(".py"):
        return ProjectRun(project, (str(programs / "python"), str(project / rest[0])), kept)
    if rest[0] == "-m":
        return ProjectRun(project, (str(programs / "python"), "-m"), kept)
    return ProjectRun(project, (str(programs / rest[0]),), kept)


def _split(args: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the folder that options name, and the arguments after the options."""
    named = ""
    position = 0
    while position < len(args) and args[position].startswith("-") and args[position] != "-m":
        option, equals, value = args[position].partition("=")
        position += 1
        if not equals and option in (*_DIRECTORIES, *_VALUED) and position < len(args):
            value = args[position]
            position += 1
        if option in _DIRECTORIES:
            named = value
    return named, tuple(args[position:])
