"""Commands that a person writes: one Markdown file each, whose text becomes a message."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from internal.channels.cli.render.text import truncate_line

_MAX_BYTES = 100_000
_MAX_COMMANDS = 200
_MAX_DESCRIPTION = 100
_NAME = re.compile(r"\w[\w-]{0,39}")
_FRONT_MATTER = re.compile(r"---\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PLACEHOLDER = re.compile(r"\$(ARGUMENTS|[1-9])")


class CustomCommand(NamedTuple):
    """A command with the text of its message, in which placeholders stand for its arguments."""

    name: str
    description: str
    text: str

    def expand(self, arguments: str) -> str:
        """Return the message: `$ARGUMENTS` is everything typed, `$1` the first word of it.

        Arguments are appended if the text has no placeholder.
        """
        words = arguments.split()

        def value(found: re.Match[str]) -> str:
            if found[1] == "ARGUMENTS":
                return arguments
            number = int(found[1])
            return words[number - 1] if number <= len(words) else ""

        text, count = _PLACEHOLDER.subn(value, self.text)
        return text if count or not arguments else f"{text}\n\n{arguments}"


class UnusableCommand(NamedTuple):
    """A file that is no command; `reason` is the key of a message."""

    file: str
    reason: str


def load_commands(
    folder: Path, taken: Collection[str]
) -> tuple[list[CustomCommand], list[UnusableCommand]]:
    """Read the commands of a folder, in the order of their names, and its unusable files.

    `taken` are the names that a command must not have.
    """
    commands: list[CustomCommand] = []
    problems: list[UnusableCommand] = []
    try:
        paths = sorted(folder.glob("*.md"))[:_MAX_COMMANDS]
    except OSError:
        return [], []
    for path in paths:
        found = _read(path, taken)
        if isinstance(found, CustomCommand):
            commands.append(found)
        else:
            problems.append(UnusableCommand(truncate_line(path.name, 60), found))
    return commands, problems


def _read(path: Path, taken: Collection[str]) -> CustomCommand | str:
    """Return a command, or why the file is none."""
    name = path.stem.lower()
    if name in taken:
        return "custom_taken"
    if not _NAME.fullmatch(name):
        return "custom_name"
    whole = _text_of(path)
    if whole is None:
        return "custom_unreadable"
    found = _FRONT_MATTER.match(whole)
    if found is None and whole.startswith("---"):
        return "custom_front_matter"
    front, text = (found[1], whole[found.end() :].strip()) if found else ("", whole.strip())
    if not text:
        return "custom_empty"
    described = re.search(r"^description:(.*)$", front, re.MULTILINE)
    description = described[1].strip().strip("\"'") if described else text.splitlines()[0]
    return CustomCommand(name, truncate_line(description, _MAX_DESCRIPTION), text)


def _text_of(path: Path) -> str | None:
    try:
        # a pipe would block
        if path.is_file() and path.stat().st_size <= _MAX_BYTES:
            return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        pass
    return None
