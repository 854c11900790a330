"""The files outside of the workspace that isolated commands see.

The rules `read_outside(/srv/data)` and `write_outside(/srv/data)` hold for the commands of all
tools, and for all that is below the path. A command names further paths in its arguments: they need
such a rule, or a person's yes. Where a path really leads is checked by the tool.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from internal.agent.domain.permissions.rules import (
    OutsidePattern,
    Rule,
    RuleError,
    parse_outside_pattern,
)
from internal.agent.domain.permissions.targets import (
    READ_OUTSIDE,
    WRITE_OUTSIDE,
    OutsidePathTarget,
    Target,
)


class OutsideAccess(msgspec.Struct, frozen=True):
    """Absolute paths outside of the workspace that a command sees; none by default."""

    read_only: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


NO_OUTSIDE = OutsideAccess()


class OutsidePath(msgspec.Struct, frozen=True):
    """A path in the arguments of a call. `path` is its normal form, "" if it cannot be allowed."""

    text: str
    path: str
    writable: bool

    @property
    def rule(self) -> str:
        """The narrowest rule that allows it."""
        return f"{WRITE_OUTSIDE if self.writable else READ_OUTSIDE}({self.path})"

    def is_covered_by(self, rule: Rule) -> bool:
        """Return True if an allow rule covers the path."""
        tools = {WRITE_OUTSIDE} if self.writable else {READ_OUTSIDE, WRITE_OUTSIDE}
        found = _paths(rule) if rule.tool in tools else ()
        return any(is_below(self.path, folder) for folder in found)

    def is_denied_by(self, rule: Rule) -> bool:
        """Return True if a deny rule forbids the path, or something below it."""
        tools = {READ_OUTSIDE, WRITE_OUTSIDE} if self.writable else {READ_OUTSIDE}
        if rule.tool not in tools:
            return False
        return rule.patterns is None or any(
            is_below(self.path, denied) or is_below(denied, self.path) for denied in _paths(rule)
        )


def wanted_paths(
    targets: Iterable[Target], arguments: Mapping[str, Any]
) -> tuple[OutsidePath, ...]:
    """Return the paths that the arguments of a call name."""
    found: list[OutsidePath] = []
    for target in targets:
        if isinstance(target, OutsidePathTarget):
            value = arguments.get(target.argument) or ()
            values = value if isinstance(value, list | tuple) else (value,)
            found += [_outside_path(one, writable=target.writable) for one in values]
    return tuple(dict.fromkeys(found))


def outside_access(
    allow: Iterable[Rule], deny: Iterable[Rule], wanted: Iterable[OutsidePath]
) -> OutsideAccess:
    """Return the paths that a permitted call sees, by the rules and by its own arguments.

    Args:
        allow: rules of any kind.
        deny: rules of any kind; a path of an allow rule is left out if one of them forbids it.
        wanted: the paths in the arguments of the call.
    """
    allowed = [
        OutsidePath(path, path, rule.tool == WRITE_OUTSIDE)
        for rule in allow
        if rule.tool in {READ_OUTSIDE, WRITE_OUTSIDE}
        for path in _paths(rule)
    ]
    denied = tuple(deny)
    seen = [one for one in allowed if not any(one.is_denied_by(rule) for rule in denied)]
    seen += [one for one in wanted if one.path]
    writable = dict.fromkeys(one.path for one in seen if one.writable)
    read_only = dict.fromkeys(one.path for one in seen if one.path not in writable)
    return OutsideAccess(tuple(read_only), tuple(writable))


def is_below(path: str, folder: str) -> bool:
    """Return True for a folder itself and for every path in it."""
    return path == folder or path.startswith(f"{folder}/")


def _outside_path(value: object, *, writable: bool) -> OutsidePath:
    if not isinstance(value, str):
        return OutsidePath(f"({value!r})", "", writable)
    try:
        return OutsidePath(value, parse_outside_pattern(value, value).path, writable)
    except RuleError:
        return OutsidePath(value, "", writable)


def _paths(rule: Rule) -> list[str]:
    return [one.path for one in rule.patterns or () if isinstance(one, OutsidePattern)]
