"""The header of a `SKILL.md`: YAML that is data only.

Every scalar is text, and aliases and tags of programming languages are refused.
"""

import re
from textwrap import dedent
from typing import Any

import yaml

from internal.skills.errors import SkillUnreadable

MAX_HEADER_CHARS = 64_000
MAX_DEPTH = 10

_DATA_TAGS = re.compile(r"tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)")
# A plain value at the start of a line, with the indented lines that continue it.
_PLAIN_VALUE = re.compile(
    r"^([\w-]+:[ \t]+)([^\s'\"|>\[{&*!#][^\n]*(?:\n[ \t]+[^\n]*)*)$", re.MULTILINE
)

# A key at the start of a line, and the text up to the next one.
_KEY_AND_VALUE = re.compile(
    r"^([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*(?:\n(?![A-Za-z][\w-]*[ \t]*:).*)*)", re.MULTILINE
)
_BLOCK_MARK = re.compile(r"^[|>][+-]?[ \t]*(?=\n)")


def read_header(text: str, path: str) -> tuple[dict[str, Any], list[str]]:
    """Return the keys of a header, and its irregularities.

    Values with unquoted colons are quoted in a second attempt; a text that is not YAML is read line
    by line.

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
            if not (header := _read_lines(text)):
                raise SkillUnreadable(_explain(error, path)) from None
            return header, [f"{_explain(error, path)} It is read line by line."]
    if header in ("", None):
        return {}, [f"{path}: its header is empty."]
    if not isinstance(header, dict):
        raise SkillUnreadable(f"{path}, line 2: the header is not a list of keys and values.")
    return header, []


def _load(text: str, path: str) -> Any:
    depth = 0
    anchors: set[str] = set()
    for event in yaml.parse(text, Loader=yaml.CBaseLoader):
        line = event.start_mark.line + 2 if event.start_mark else 2
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                # meant as text: *.md or *important*
                raise yaml.YAMLError
            raise SkillUnreadable(f"{path}, line {line}: YAML aliases are not accepted.")
        if anchor := getattr(event, "anchor", None):
            anchors.add(anchor)
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


def _read_lines(text: str) -> dict[str, Any]:
    """Return the keys at the starts of lines; each value is the text up to the next key."""
    header: dict[str, Any] = {}
    for found in _KEY_AND_VALUE.finditer(dedent(text)):
        value = " ".join(_BLOCK_MARK.sub("", found[2], count=1).split())
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        header.setdefault(found[1], value[1:-1] if is_quoted else value)
    return header


def _quote(found: re.Match[str]) -> str:
    key, value = found[1], found[2]
    return f"{key}'{value.replace(chr(39), chr(39) * 2)}'" if ":" in value else found[0]


def _explain(error: yaml.YAMLError, path: str) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    where = f"{path}, line {mark.line + 2}" if mark is not None else path
    return f"{where}: the YAML cannot be read: {problem or 'it has characters that YAML forbids'}."
