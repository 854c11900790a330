"""A tool call as the rules see it: a command, a path, an address, or only a tool's name."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from internal.agent.domain.permissions import path_host_rules
from internal.agent.domain.permissions.rules import (
    PATH_TOOLS,
    HostRule,
    PathRule,
    Rule,
    RuleError,
    ToolRule,
    parse_allow_rule,
)
from internal.agent.domain.permissions.shell import matcher
from internal.agent.domain.permissions.shell.parser import ParsedCommand, Script, read_script
from internal.agent.domain.text import escape_invisible

_SHOWN = 120  # characters of a command or path in a sentence
_PARTS = 16  # uncovered parts of a command in a sentence; with more of them no rules are offered


class MissingPermission(NamedTuple):
    """Why a call may not run by itself, and the rules that together would let it.

    `reason_detail` is what of the reason is news to a person who sees the call, None for all of it.
    """

    reason: str
    rules: tuple[str, ...] = ()
    reason_detail: str | None = None


class RuledCall:
    """One call and the text in it that rules with a pattern are about, if it has one."""

    def __init__(self, tool: str, arguments: Mapping[str, Any]) -> None:
        self.tool = tool
        self.shown = tool  # for a sentence
        self._text = self._argument(arguments)
        if self._text is not None:
            self.shown = f"{tool} {_shown(self._text)}"

    def _argument(self, arguments: Mapping[str, Any]) -> str | None:
        if self.tool == "shell":
            value = arguments.get("command")
        elif self.tool == "web_fetch":
            value = arguments.get("url")
        elif self.tool in PATH_TOOLS:
            value = arguments.get("path", ".")
        else:
            return None
        return value if isinstance(value, str) else None

    @cached_property
    def script(self) -> Script:
        """The command, parsed once and only if somebody asks."""
        return read_script(self._text or "")

    @cached_property
    def reach(self) -> tuple[matcher.Part, ...]:
        """The parts of the command and those hidden in their arguments."""
        return matcher.reach(self.script)

    def denied(self, rule: Rule) -> bool | None:
        """Whether a deny rule matches; None if nobody can tell."""
        if rule.tool != self.tool:
            return False
        if isinstance(rule, ToolRule):
            return True
        if self._text is None:
            return None
        if isinstance(rule, PathRule):
            return path_host_rules.denies_place(rule, self._text)
        if isinstance(rule, HostRule):
            return path_host_rules.denies_host(rule, path_host_rules.read_url(self._text))
        denied = matcher.denies(rule, self.reach)
        return None if self.script.trouble and not denied else denied

    def missing(self, allow: Sequence[Rule]) -> str | MissingPermission | None:
        """What is missing; else the rules that allow the call, or None if it needs no rule."""
        rules = [rule for rule in allow if rule.tool == self.tool]
        if self.tool == "shell":
            return self._missing_shell(rules)
        for rule in rules:
            if self._covered(rule):
                return rule.text
        offered = self._suggested()
        reason = f"{self.shown} needs a person's agreement."
        return MissingPermission(reason, (offered,) if offered else (), "")

    def _covered(self, rule: Rule) -> bool:
        match rule:
            case ToolRule():
                return True
            case PathRule() if self._text is not None:
                return path_host_rules.covers_path(rule.glob, self._text)
            case HostRule() if self._text is not None:
                return path_host_rules.covers_host(rule, path_host_rules.read_url(self._text))
            case _:
                return False

    def _suggested(self) -> str:
        if self._text is None:
            known = self.tool == "web_fetch" or self.tool in PATH_TOOLS
            return "" if known else _tool_rule(self.tool)
        if self.tool == "web_fetch":
            return path_host_rules.suggested_host(path_host_rules.read_url(self._text))
        return path_host_rules.suggested_path(self.tool, self._text)

    def _missing_shell(self, allow: Sequence[Rule]) -> str | MissingPermission | None:
        script = self.script
        if script.trouble:
            return MissingPermission(f"{self.shown} cannot be judged: {script.trouble}.")
        if not script.parts:
            return MissingPermission(f"{self.shown} holds no command.")
        used: list[str] = []
        uncovered = []
        for part in script.parts:
            if matcher.harmless(part):
                continue
            rule = next((rule for rule in allow if matcher.covers(rule, part)), None)
            if rule is None:
                uncovered.append(part)
            else:
                used.append(rule.text)
        if not uncovered:
            return " and ".join(dict.fromkeys(used)) or None
        needs = "; ".join(_part_shown(part) for part in uncovered[:_PARTS])
        if more := len(uncovered[_PARTS:]):
            needs = f"{needs}; and {more} more"
        rules = [matcher.suggestion(part) for part in uncovered[:_PARTS]]
        offered = tuple(dict.fromkeys(rules)) if all(rules) and not more else ()
        reason_detail = "" if self.shown == f"{self.tool} {needs}" else f"no rule allows {needs}"
        return MissingPermission(
            f"{self.shown} needs a person's agreement for: {needs}.", offered, reason_detail
        )


def _tool_rule(tool: str) -> str:
    try:
        return parse_allow_rule(tool).text
    except RuleError:
        return ""


def _part_shown(part: matcher.Part) -> str:
    if isinstance(part, ParsedCommand):
        words = (*part.assignments, *part.words)
        text = " ".join(word.source for word in words)
        return f"{_shown(text)} ({part.asks})" if part.asks else _shown(text)
    return f"{'write' if part.writes else 'read'} {_shown(part.target.source)}"


def _shown(text: str) -> str:
    """The beginning of a text as one line that shows what it is."""
    line = escape_invisible(text[:_SHOWN]).replace("\n", "\\n").replace("\t", "\\t")
    return f"{line}…" if len(text) > _SHOWN else line
