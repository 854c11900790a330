"""Match the targets of one tool call against rules.

Each kind of target has a matcher. `CallMatcher` combines them: a call is denied if one target is
denied, and allowed if every target is allowed.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

from internal.agent.domain.permissions import hosts, network, outside_paths, paths
from internal.agent.domain.permissions.rules import (
    CommandPattern,
    HostPattern,
    PathPattern,
    Pattern,
    RedirectPattern,
    Rule,
    RuleError,
    parse_allow_rule,
)
from internal.agent.domain.permissions.shell import matcher as shell
from internal.agent.domain.permissions.shell.denials import Reach, any_denied, denies
from internal.agent.domain.permissions.shell.parser import ParsedCommand, Script, parse_script
from internal.agent.domain.permissions.targets import (
    NETWORK,
    SANDBOX_TARGETS,
    CodeTarget,
    CommandTarget,
    PathTarget,
    SandboxTarget,
    UrlTarget,
    rule_names,
)
from internal.agent.domain.text import escape_invisible
from internal.agent.domain.tools import ToolSpec

_MAX_SHOWN_CHARS = 120  # of a command or path in a message
_MAX_PARTS = 16  # uncovered parts of a command in a message; beyond that no rules are suggested


ReasonCode = Literal["", "no_rule", "unchecked", "deny_rule", "network", "owner"]
"""Why a call needs approval besides that no rule allows it: `no_rule` names the parts of a command
that need one, `unchecked` what cannot be parsed, `deny_rule` the rule that may match; with
`network` names the hosts that an isolated command reaches, and paths outside of its workspace;
`owner`: only the owner may approve what `about` names, and no rule."""


class MissingPermission(NamedTuple):
    """The reason why a call needs approval, and the rules that together would allow it.

    `reason_detail` is the part of the reason that the call itself does not show, None for the whole
    reason. `code` is the same reason for channels in other languages, with `about` as its variable
    part.
    """

    reason: str
    rules: tuple[str, ...] = ()
    reason_detail: str | None = None
    code: ReasonCode = ""
    about: str = ""


class TargetMatcher(Protocol):
    """The rules that apply to one target of a call."""

    text: str | None
    """The value of the argument, None if it is missing or not a string."""

    def check_denials(self, rules: Sequence[Rule]) -> list[bool | None]:
        """Return for each deny rule with a pattern whether it matches, None if that is unknown."""
        ...

    def find_missing(self, label: str, allow: Sequence[Rule]) -> MissingPermission | list[str]:
        """Return the rules for the target, or the missing permission. `label` names the call."""
        ...


class CallMatcher:
    """One call and its targets."""

    def __init__(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        self.tool = spec.name
        self._rule_names = rule_names(spec.name)
        self._matchers = [
            _matcher(spec.name, target, value)
            for target in spec.targets
            if not isinstance(target, SandboxTarget)
            for value in _values(target, arguments)
        ]
        self._hosts = network.wanted_hosts(spec.targets, arguments)
        self._outside = outside_paths.wanted_paths(spec.targets, arguments)
        texts = [each.text for each in self._matchers if each.text is not None]
        self.label = " ".join([spec.name, *map(_shorten, texts)])
        """The call in a message."""

    @property
    def protected_path(self) -> str | None:
        """The first path in a folder that no tool may change."""
        texts = [each.text for each in self._matchers if isinstance(each, _PathMatcher)]
        found = (text for text in texts if text is not None and paths.is_protected(text))
        return next((_shorten(text) for text in found), None)

    @property
    def changes_configuration(self) -> bool:
        """True if a path of the call configures programs or agents that people run later."""
        texts = [each.text for each in self._matchers if isinstance(each, _PathMatcher)]
        return any(text is None or paths.is_configuration(text) for text in texts)

    def check_denials(self, rules: Sequence[Rule]) -> list[bool | None]:
        """Return for each deny rule whether it matches a target, None if that is unknown."""
        own = [
            rule for rule in rules if rule.tool in self._rule_names and rule.patterns is not None
        ]
        columns = [each.check_denials(own) for each in self._matchers]
        denied = {rule.text: any_denied(row) for rule, *row in zip(own, *columns, strict=True)}
        return [
            self._is_access_denied(rule)
            if rule.tool in SANDBOX_TARGETS
            else rule.tool in self._rule_names and (rule.patterns is None or denied[rule.text])
            for rule in rules
        ]

    def _is_access_denied(self, rule: Rule) -> bool:
        """Return True if a rule denies a host or a path outside that the call names."""
        if rule.tool != NETWORK:
            return any(one.is_denied_by(rule) for one in self._outside if one.path)
        named = filter(None, map(network.parse_wanted_host, self._hosts))
        return any(network.denies_host(rule, host) for host in named)

    @property
    def invalid_access(self) -> str | None:
        """The problem with the first argument that should name a host or an outside path."""
        for host in self._hosts:
            if network.parse_wanted_host(host) is None:
                return f"{_shorten(host)} is not a host: write example.com, example.com:8443 or *."
        for one in self._outside:
            if not one.path:
                return f"{_shorten(one.text)} cannot be given to commands: write an absolute path."
        return None

    def find_missing_access(self, allow: Sequence[Rule]) -> MissingPermission | None:
        """Return the missing permission for hosts and outside paths in the call, or None."""
        missing: dict[str, str] = {}  # rules by the targets that need them
        for text in self._hosts:
            wanted = network.parse_wanted_host(text)
            if wanted is None or not any(network.covers_host(rule, wanted) for rule in allow):
                missing[_shorten(text)] = network.suggest_network_rule(text)
        for one in self._outside:
            if not any(one.is_covered_by(rule) for rule in allow):
                verb = "change" if one.writable else "read"
                missing[f"{_shorten(one.path)} ({verb})"] = one.rule
        if not missing:
            return None
        about = ", ".join([*missing][:_MAX_PARTS])
        reason = f"{self.label} needs approval: it reaches {about}."
        offered = tuple(missing.values()) if len(missing) <= _MAX_PARTS else ()
        return MissingPermission(reason, offered, f"it reaches {about}", "network", about)

    def find_missing(self, allow: Sequence[Rule]) -> str | MissingPermission | None:
        """Return the missing permission, or the rules for the call; None if it needs no rule."""
        rules = [rule for rule in allow if rule.tool in self._rule_names]
        if not self._matchers:
            return self._find_missing_tool([rule for rule in rules if rule.patterns is None])
        results = [each.find_missing(self.label, rules) for each in self._matchers]
        missing = [each for each in results if isinstance(each, MissingPermission)]
        if not missing:
            used = [rule for each in results if isinstance(each, list) for rule in each]
            return " and ".join(dict.fromkeys(used)) or None
        first = missing[0]
        offered = all(each.rules for each in missing)
        suggested = dict.fromkeys(rule for each in missing for rule in each.rules)
        return first._replace(rules=tuple(suggested) if offered else ())

    def _find_missing_tool(self, rules: Sequence[Rule]) -> str | MissingPermission:
        if rules:
            return rules[0].text
        reason = f"{self.label} needs approval."
        try:
            parse_allow_rule(self.tool, {})
        except RuleError:
            return MissingPermission(reason, (), "")
        return MissingPermission(reason, (self.tool,), "")


def _values(
    target: PathTarget | UrlTarget | CommandTarget | CodeTarget, arguments: Mapping[str, Any]
) -> list[str | None]:
    """Return the values of a target, with None in place of values that are not strings."""
    if not isinstance(target, PathTarget):
        found = [arguments.get(target.argument)]
    elif target.multiple and isinstance(value := arguments.get(target.argument), list):
        found = value
    else:
        found = [arguments.get(target.argument, ".")]
    return [each if isinstance(each, str) else None for each in found]


def _matcher(
    tool: str, target: PathTarget | UrlTarget | CommandTarget | CodeTarget, value: str | None
) -> TargetMatcher:
    match target:
        case PathTarget(recursive=recursive):
            return _PathMatcher(tool, value, recursive=recursive)
        case UrlTarget():
            return _UrlMatcher(tool, value)
        case CommandTarget():
            return _CommandMatcher(tool, value)
        case CodeTarget():
            return _CodeMatcher(value)


class _PathMatcher:
    def __init__(self, tool: str, text: str | None, *, recursive: bool) -> None:
        self.text = text
        self._tool = tool
        self._recursive = recursive

    def check_denials(self, rules: Sequence[Rule]) -> list[bool | None]:
        return [self._is_denied(rule) for rule in rules]

    def _is_denied(self, rule: Rule) -> bool | None:
        if self.text is None:
            return None
        return any_denied(
            [
                paths.denies_path(pattern.glob, self.text, recursive=self._recursive)
                for pattern in _patterns(rule)
                if isinstance(pattern, PathPattern)
            ]
        )

    def find_missing(self, label: str, allow: Sequence[Rule]) -> MissingPermission | list[str]:
        rule = next((rule for rule in allow if self._is_allowed(rule)), None)
        if rule is not None:
            return [rule.text]
        text = self.text
        suggested = "" if text is None else paths.suggest_path_rule(self._tool, text)
        return _missing(label, suggested)

    def _is_allowed(self, rule: Rule) -> bool:
        return rule.patterns is None or any(
            isinstance(pattern, PathPattern)
            and self.text is not None
            and paths.allows_path(pattern.glob, self.text)
            for pattern in rule.patterns
        )


class _UrlMatcher:
    def __init__(self, tool: str, text: str | None) -> None:
        self.text = text
        self._tool = tool
        self._site = None if text is None else hosts.parse_url(text)

    def check_denials(self, rules: Sequence[Rule]) -> list[bool | None]:
        return [self._is_denied(rule) for rule in rules]

    def _is_denied(self, rule: Rule) -> bool | None:
        if self._site is None:
            return None
        return any_denied(
            [
                hosts.denies_site(pattern, self._site)
                for pattern in _patterns(rule)
                if isinstance(pattern, HostPattern)
            ]
        )

    def find_missing(self, label: str, allow: Sequence[Rule]) -> MissingPermission | list[str]:
        rule = next((rule for rule in allow if self._is_allowed(rule)), None)
        if rule is not None:
            return [rule.text]
        site = self._site
        return _missing(label, "" if site is None else hosts.suggest_host_rule(self._tool, site))

    def _is_allowed(self, rule: Rule) -> bool:
        return rule.patterns is None or any(
            isinstance(pattern, HostPattern)
            and self._site is not None
            and hosts.allows_site(pattern, self._site)
            for pattern in rule.patterns
        )


class _CommandMatcher:
    def __init__(self, tool: str, text: str | None) -> None:
        self.text = text
        self._tool = tool

    @cached_property
    def _script(self) -> Script:
        return parse_script(self.text or "")

    def check_denials(self, rules: Sequence[Rule]) -> list[bool | None]:
        if self.text is None or not rules:
            return [None] * len(rules)
        patterns = [
            [each for each in _patterns(rule) if isinstance(each, CommandPattern | RedirectPattern)]
            for rule in rules
        ]
        reach = Reach(self._script, [each for row in patterns for each in row])
        return [denies(row, reach) for row in patterns]

    def find_missing(self, label: str, allow: Sequence[Rule]) -> MissingPermission | list[str]:
        script = self._script
        if script.problem:
            reason = f"{label} cannot be checked: {script.problem}."
            return MissingPermission(reason, code="unchecked", about=script.problem)
        if not script.parts:
            return MissingPermission(f"{label} contains no command.")
        rules = shell.AllowRules(allow)
        used: list[str] = []
        uncovered: list[shell.Part] = []
        for part in script.parts:
            if shell.needs_no_rule(part):
                continue
            rule = rules.find(part)
            if rule is None:
                uncovered.append(part)
            else:
                used.append(rule.text)
        return self._missing_parts(label, uncovered) if uncovered else used

    def _missing_parts(self, label: str, parts: Sequence[shell.Part]) -> MissingPermission:
        needs = "; ".join(_describe_part(part) for part in parts[:_MAX_PARTS])
        if more := len(parts[_MAX_PARTS:]):
            needs = f"{needs}; and {more} more"
        rules = [shell.suggest_rule(self._tool, part) for part in parts[:_MAX_PARTS]]
        offered = tuple(dict.fromkeys(rules)) if all(rules) and not more else ()
        reason = f"{label} needs approval for: {needs}."
        if label == f"{self._tool} {needs}":
            return MissingPermission(reason, offered, "")
        return MissingPermission(reason, offered, f"no rule allows {needs}", "no_rule", needs)


class _CodeMatcher:
    """Code is allowed by a rule for the whole tool only; no such rule is offered to people."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def check_denials(self, rules: Sequence[Rule]) -> list[bool | None]:
        return [False for _ in rules]

    def find_missing(self, label: str, allow: Sequence[Rule]) -> MissingPermission | list[str]:
        rule = next((rule for rule in allow if rule.patterns is None), None)
        return [rule.text] if rule is not None else _missing(label, "")


def _patterns(rule: Rule) -> tuple[Pattern, ...]:
    return rule.patterns or ()


def _missing(label: str, rule: str) -> MissingPermission:
    return MissingPermission(f"{label} needs approval.", (rule,) if rule else (), "")


def _describe_part(part: shell.Part) -> str:
    if isinstance(part, ParsedCommand):
        words = (*part.assignments, *part.words)
        text = " ".join(word.source for word in words)
        return f"{_shorten(text)} ({part.no_rule})" if part.no_rule else _shorten(text)
    return f"{'write' if part.writes else 'read'} {_shorten(part.target.source)}"


def _shorten(text: str) -> str:
    """Return the beginning of a text on one line, with invisible characters escaped."""
    line = escape_invisible(text[:_MAX_SHOWN_CHARS]).replace("\n", "\\n").replace("\t", "\\t")
    return f"{line}…" if len(text) > _MAX_SHOWN_CHARS else line
