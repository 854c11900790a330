"""Parses YAML into plain values and records the line of each.

Settings need a small part of YAML: mappings, lists, text, numbers, true and false. Plain scalars
follow the core schema of YAML 1.2, so `gates: off` is text and `1:30` is not a number. Anchors are
rejected because they can expand without bound, tags because they can name code.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from internal.settings.messages import plain
from internal.settings.types import ConfigError, Place

MAX_FILE_BYTES = 262_144

_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_WHOLE = re.compile(r"[-+]?[0-9]{1,300}")
_FRACTION = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]{1,300}(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_OWN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}


class Document(NamedTuple):
    """A mapping, and the line of each value by its path, counted from 1."""

    values: dict[str, Any]
    lines: Mapping[Place, int]


def read_document(file: Path, what: str) -> Document:
    """Read a YAML file of at most `MAX_FILE_BYTES`; `what` is the file in the errors about it.

    Raises:
        ConfigError: it cannot be read, or as `parse` does.
    """
    try:
        # must not block on a pipe without a writer
        number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            is_file = stat.S_ISREG(os.fstat(number).st_mode)
            content = os.read(number, MAX_FILE_BYTES + 1) if is_file else None
        finally:
            os.close(number)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the name is invalid"
        raise ConfigError(f"{what} cannot be read: {reason}.") from None
    if content is None:
        raise ConfigError(f"{what} is not a file.")
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(f"{what} is larger than {MAX_FILE_BYTES} bytes.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} is not UTF-8 (byte {error.start}).") from None
    return parse(text, str(file))


def parse(text: str, name: str) -> Document:
    """Parse YAML text; `name` is its source in error messages. Empty text is an empty mapping.

    Raises:
        ConfigError: it is not YAML, uses unsupported features, repeats a key, or is not a mapping.
            No value appears in the message.
    """
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
        reader = _Reader(name)
        values = {} if root is None else reader.read(root, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{name}:{line}: invalid YAML: {_problem(error)}.") from None
    except yaml.YAMLError:
        raise ConfigError(f"{name}: it contains a control character.") from None
    except RecursionError:
        raise ConfigError(f"{name}: it is nested too deeply.") from None
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(
            f"{name}: settings must be a mapping, such as `server:` with keys below it."
        )
    return Document(values, reader.lines)


class _Reader:
    """Converts nodes to values, each node once: a second visit means an anchor."""

    def __init__(self, name: str) -> None:
        self.lines: dict[Place, int] = {}
        self._name = name
        self._seen: set[int] = set()

    def read(self, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if id(node) in self._seen:
            raise self._refusal(node, "anchors are not supported; repeat the value")
        if node.tag not in _OWN_TAGS:
            raise self._refusal(node, "tags such as !this are not supported")
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*place, at)) for at, item in enumerate(node.value)]
        quoted = isinstance(node, yaml.ScalarNode) and node.style
        return node.value if quoted else _word(node.value)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise self._refusal(name, "a key must be a scalar")
            if name.value in values:
                raise self._refusal(name, f"the key {plain(name.value)} is a duplicate")
            here = (*place, name.value)
            self.lines[here] = name.start_mark.line + 1
            values[name.value] = self.read(value, here)
        return values

    def _refusal(self, node: yaml.Node, problem: str) -> ConfigError:
        return ConfigError(f"{self._name}:{node.start_mark.line + 1}: {problem}.")


def _word(text: str) -> str | float | bool | None:
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "it cannot be read"
    if r"'\t'" in problem:
        return "tabs are not allowed here; use spaces"
    return plain(problem.replace("but found another document", "only one document is allowed"))
