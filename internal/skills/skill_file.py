"""The text of a `SKILL.md`: YAML between `---` lines, then Markdown (https://agentskills.io).

Skills in public repositories often break the rules of the format, so reading is lenient.
"""

import codecs
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from internal.agent.domain.text import escape_hidden, truncate_line
from internal.skills.errors import SkillUnreadable

FILE_NAME = "SKILL.md"
MAX_FILE_BYTES = 1_000_000
MAX_NAME_CHARS = 64
MAX_PARAGRAPH_CHARS = 500

_HEADER = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# A header without its last line: keys and the lines indented below them.
_OPEN_HEADER = re.compile(r"---[ \t]*\n((?:[A-Za-z][\w-]*:.*\n|[ \t]+\S.*\n)+)")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_USABLE_NAME = re.compile(r"\w[\w .-]{0,63}")
_UNUSABLE_CHARS = re.compile(r"[^\w.-]+")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


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


def find_file_name(names: Iterable[str]) -> str | None:
    """Return the name of the `SKILL.md` in a folder, in any case; None if it is missing."""
    found = [name for name in names if name.casefold() == FILE_NAME.casefold()]
    return min(found, key=lambda name: (name != FILE_NAME, name), default=None)


def parse_skill_file(content: bytes, path: str, folder_name: str) -> SkillFile:
    """Return the content of a `SKILL.md`; `path` is its name in messages.

    Raises:
        SkillUnreadable: nothing describes it, or it is not text with a header that can be read.
    """
    text = _decoded(content, path)
    header, body, warnings = _split_header(text, path)
    description = header.get("description")
    if not isinstance(description, str) or not description.strip():
        description = _first_paragraph(body)
        if not description:
            raise SkillUnreadable(f"{path}, line 1: the skill has no description and no text.")
        warnings.append(f"{path}: it has no description; its first paragraph is used.")
    name, unusual = _checked_name(header.get("name"), path, folder_name)
    if not path.endswith(FILE_NAME):
        unusual.append(f"{path}: other agents expect the name {FILE_NAME}.")
    return SkillFile(
        name=name,
        description=description.strip(),
        body=body.strip("\n"),
        allowed_tools=_split_tools(header.get("allowed-tools")),
        header=header,
        warnings=(*warnings, *unusual),
    )


def _decoded(content: bytes, path: str) -> str:
    """Return the text of a file with plain line ends.

    Raises:
        SkillUnreadable: it is too large, or no text in Unicode.
    """
    if len(content) > MAX_FILE_BYTES:
        raise SkillUnreadable(f"{path} is larger than {MAX_FILE_BYTES:,} bytes.")
    encoding = "utf-16" if content.startswith(_UTF16_MARKS) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SkillUnreadable(f"{path}, line {line}: this is not UTF-8 text.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _split_header(text: str, path: str) -> tuple[dict[str, Any], str, list[str]]:
    """Return the header, the text after it, and their irregularities.

    Raises:
        SkillUnreadable: the header cannot be read.
    """
    start = text.lstrip()
    found = _HEADER.match(start)
    if found is not None:
        header, warnings = _read_header(found[1], path)
        return header, start[found.end() :], warnings
    found = _OPEN_HEADER.match(start)
    if found is None:
        return {}, text, [f"{path}: it has no header between two lines of ---."]
    header, warnings = _read_header(found[1], path)
    return header, start[found.end() :], [f"{path}: its header has no end.", *warnings]


def _first_paragraph(body: str) -> str:
    """Return the first text that is not a heading, else the first heading, on one line."""
    headings: list[str] = []
    for paragraph in _PARAGRAPHS.split(body):
        lines = [line.strip() for line in paragraph.strip().splitlines()]
        text = " ".join(line for line in lines if line.strip("-=*_#") and not line.startswith("#"))
        if text:
            return truncate_line(text, MAX_PARAGRAPH_CHARS)
        headings += [line.strip("# ") for line in lines if line.strip("# -=*_")]
    return truncate_line(headings[0], MAX_PARAGRAPH_CHARS) if headings else ""


def _checked_name(given: object, path: str, folder_name: str) -> tuple[str, list[str]]:
    """Return the name of a skill, and its irregularities.

    An invalid name is replaced by the name of the folder.

    Raises:
        SkillUnreadable: the name of the folder has no letter or digit either.
    """
    own = given.strip() if isinstance(given, str) else ""
    folder = folder_name.strip()
    usable = folder if _USABLE_NAME.fullmatch(folder) else _without_unusable(folder)
    if own and not _USABLE_NAME.fullmatch(own):
        problem = (
            f"{path}: {truncate_line(escape_hidden(own), 100)!r} cannot be the name of a skill"
        )
        if not usable:
            raise SkillUnreadable(f"{problem}, nor can that of its folder.")
        return usable, [f"{problem}; it is called {usable}."]
    name = own or usable
    if not name:
        raise SkillUnreadable(f"{path}: it has no name, and that of its folder cannot be one.")
    warnings = []
    if not _NAME.fullmatch(name):
        warnings.append(f"{path}: the name {name} is not lowercase letters, digits and hyphens.")
    if name != folder_name:
        warnings.append(f"{path}: the name {name} differs from the folder's, {folder_name[:100]}.")
    return name, warnings


def _without_unusable(name: str) -> str:
    """Return a name with hyphens in place of invalid characters; "" if nothing is left."""
    return _UNUSABLE_CHARS.sub("-", name).strip("-._")[:MAX_NAME_CHARS]


def _split_tools(given: object) -> tuple[str, ...]:
    """Return the entries of `allowed-tools`: a list, or text with spaces or commas."""
    if isinstance(given, str):
        # an unclosed parenthesis belongs to the entry: Write(notes is not Write
        return tuple(re.findall(r"[^\s,(]+(?:\([^)]*\)?)?", given))
    return tuple(map(str, given)) if isinstance(given, list) else ()


def _read_header(text: str, path: str) -> tuple[dict[str, Any], list[str]]:
    from internal.skills.skill_header import read_header  # noqa: PLC0415 - yaml imports slowly

    return read_header(text, path)
