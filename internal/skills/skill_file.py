"""The text of a `SKILL.md`: YAML between `---` lines, then Markdown (https://agentskills.io).

Skills in public repositories often break the rules of the format, so reading is lenient. The YAML
is data only: every scalar is text, and aliases and tags of programming languages are refused.
"""

import re
from dataclasses import dataclass
from typing import Any

import yaml

from internal.agent.domain.errors import LarkspurError

FILE_NAME = "SKILL.md"
MAX_FILE_BYTES = 1_000_000
MAX_HEADER_CHARS = 64_000
MAX_DEPTH = 10
MAX_NAME_CHARS = 64

_HEADER = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_USABLE_NAME = re.compile(r"\w[\w .-]{0,63}")
_DATA_TAGS = re.compile(r"tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)")
# A plain value at the start of a line, with the indented lines that continue it.
_PLAIN_VALUE = re.compile(
    r"^([\w-]+:[ \t]+)([^\s'\"|>\[{&*!#][^\n]*(?:\n[ \t]+[^\n]*)*)$", re.MULTILINE
)


class SkillUnreadable(LarkspurError):
    """A skill cannot be read. The message names the file and, if known, the line."""


@dataclass(frozen=True, slots=True)
class SkillFile:
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
    """Return the keys of a header. Values with unquoted colons are quoted in a second attempt.

    Raises:
        SkillUnreadable: it is not a YAML mapping, is too large or too deep, or has aliases.
    """
    if len(text) > MAX_HEADER_CHARS:
        raise SkillUnreadable(f"{path}: its header has more than {MAX_HEADER_CHARS:,} characters.")
    try:
        header = _load(text, path)
    except yaml.YAMLError as error:
        try:
            header = _load(_PLAIN_VALUE.sub(_quote, text), path)
        except yaml.YAMLError:
            raise SkillUnreadable(_explain(error, path)) from None
    if not isinstance(header, dict):
        raise SkillUnreadable(f"{path}, line 2: the header is not a list of keys and values.")
    return header


def _load(text: str, path: str) -> Any:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CBaseLoader):
        line = event.start_mark.line + 2 if event.start_mark else 2
        if isinstance(event, yaml.AliasEvent):
            raise SkillUnreadable(f"{path}, line {line}: YAML aliases are not accepted.")
        tag = getattr(event, "tag", None)
        if tag not in {None, "!"} and not _DATA_TAGS.fullmatch(tag):
            raise SkillUnreadable(f"{path}, line {line}: the YAML tag {tag[:100]} is not accepted.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise SkillUnreadable(f"{path}, line {line}: the header is nested too deeply.")
    return yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 - it makes text, lists and maps only


def _quote(found: re.Match[str]) -> str:
    key, value = found[1], found[2]
    return f"{key}'{value.replace(chr(39), chr(39) * 2)}'" if ":" in value else found[0]


def _explain(error: yaml.YAMLError, path: str) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    where = f"{path}, line {mark.line + 2}" if mark is not None else path
    return f"{where}: the YAML cannot be read: {problem or 'it has characters that YAML forbids'}."
