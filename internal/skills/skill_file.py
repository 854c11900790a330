"""The text of a `SKILL.md`: YAML between `---` lines, then Markdown (https://agentskills.io).

Skills in public repositories often break the rules of the format, so reading is lenient.
"""

import re
from typing import Any

import msgspec

from internal.skills.errors import SkillUnreadable

FILE_NAME = "SKILL.md"
MAX_FILE_BYTES = 1_000_000
MAX_NAME_CHARS = 64

_HEADER = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_USABLE_NAME = re.compile(r"\w[\w .-]{0,63}")


class SkillFile(msgspec.Struct, frozen=True):
    """The content of a `SKILL.md`.

    `header` has every key of the file, also unknown ones. `allowed_tools` gives no right.
    """

    name: str
    description: str
    body: str
    allowed_tools: tuple[str, ...]
    header: dict[str, Any]
    warnings: tuple[str, ...]


def parse_skill_file(content: bytes, path: str, folder_name: str) -> SkillFile:
    """Return the content of a `SKILL.md`; `path` is its name in messages.

    Raises:
        SkillUnreadable: it has no description, or is not UTF-8 text with a YAML header.
    """
    if len(content) > MAX_FILE_BYTES:
        raise SkillUnreadable(f"{path} is larger than {MAX_FILE_BYTES:,} bytes.")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SkillUnreadable(f"{path}, line {line}: this is not UTF-8 text.") from None
    found = _HEADER.match(text)
    if found is None:
        raise SkillUnreadable(f"{path}, line 1: the header between two lines of --- is missing.")
    header = _read_header(found[1], path)
    description = header.get("description")
    if not isinstance(description, str) or not description.strip():
        raise SkillUnreadable(f"{path}, line 1: the header has no description.")
    name, warnings = _checked_name(header.get("name"), path, folder_name)
    return SkillFile(
        name=name,
        description=description.strip(),
        body=text[found.end() :].strip("\n"),
        allowed_tools=_split_tools(header.get("allowed-tools")),
        header=header,
        warnings=tuple(warnings),
    )


def _checked_name(given: object, path: str, folder_name: str) -> tuple[str, list[str]]:
    """Return the name of a skill, and what is unusual about it.

    Raises:
        SkillUnreadable: it has characters that a name cannot have.
    """
    name = given.strip() if isinstance(given, str) and given.strip() else folder_name
    if not _USABLE_NAME.fullmatch(name):
        raise SkillUnreadable(
            f"{path}: {name[:100]!r} cannot be the name of a skill; use at most {MAX_NAME_CHARS}"
            " letters, digits and hyphens."
        )
    warnings = []
    if not _NAME.fullmatch(name):
        warnings.append(f"{path}: the name {name} is not lowercase letters, digits and hyphens.")
    if name != folder_name:
        warnings.append(f"{path}: the name {name} differs from the folder's, {folder_name[:100]}.")
    return name, warnings


def _split_tools(given: object) -> tuple[str, ...]:
    """Return the entries of `allowed-tools`: a list, or text with spaces or commas."""
    if isinstance(given, str):
        # without its end, what is in parentheses belongs to the entry: Write(notes is not Write
        return tuple(re.findall(r"[^\s,(]+(?:\([^)]*\)?)?", given))
    return tuple(map(str, given)) if isinstance(given, list) else ()


def _read_header(text: str, path: str) -> dict[str, Any]:
    from internal.skills.skill_header import read_header  # noqa: PLC0415 - yaml imports slowly

    return read_header(text, path)
