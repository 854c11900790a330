"""Match the parts of a shell command against allow patterns, and suggest rules for them."""

import shlex
from collections.abc import Sequence

from internal.agent.domain.permissions.paths import allows_path, normalize_path
from internal.agent.domain.permissions.rules import (
    CommandPattern,
    Pattern,
    RedirectPattern,
    Rule,
    RuleError,
    parse_allow_rule,
)
from internal.agent.domain.permissions.shell.parser import ParsedCommand, Redirect
from internal.agent.domain.permissions.shell.programs import (
    find_unsafe_words,
    is_runner,
    program_name,
    unwrap,
)
from internal.agent.domain.permissions.shell.words import Word
from internal.agent.domain.permissions.targets import CommandTarget

Part = ParsedCommand | Redirect
MAX_COMPARISONS = 20_000
"""Comparisons of a rule with a part of a command, for one command."""

MAX_SUGGESTED_CHARS = 2_000
"""No longer rule is offered to a person."""

_SAFE_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})


def needs_no_rule(part: Part) -> bool:
    """Return True for a part that starts nothing, such as a test.

    Also for a redirect that discards output or reads a file inside the workspace.
    """
    if isinstance(part, ParsedCommand):
        return part.is_inert
    if part.target.kind != "plain":
        return False
    path = part.target.text
    is_inside = not part.writes and not part.folder_unknown and allows_path("**", path)
    return path in _SAFE_DEVICES or is_inside


class AllowRules:
    """Allow rules by the program that they name. After `MAX_COMPARISONS` no rule is found."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._compared = 0
        self._by_program: dict[str, list[Rule]] = {}
        self._others: list[Rule] = []
        for rule in rules:
            names = {_program(pattern) for pattern in rule.patterns or ()}
            for name in names - {None}:
                self._by_program.setdefault(str(name), []).append(rule)
            if not names or None in names:
                self._others.append(rule)

    def find(self, part: Part) -> Rule | None:
        """Return a rule that covers one part of a command, None if there is none."""
        heads = {w.text for w in _heads(part)} if isinstance(part, ParsedCommand) else set()
        rules = [*self._others, *(r for head in heads for r in self._by_program.get(head, ()))]
        self._compared += len(rules)
        if self._compared > MAX_COMPARISONS:
            return None
        return next((rule for rule in rules if allows_part(rule, part)), None)


def _program(pattern: Pattern) -> str | None:
    return pattern.words[0].text if isinstance(pattern, CommandPattern) else None


def _heads(command: ParsedCommand) -> tuple[Word, ...]:
    return (*command.words[:1], *unwrap(command.words)[:1])


def allows_part(rule: Rule, part: Part) -> bool:
    """Return True if an allow rule covers one part of a command."""
    return rule.patterns is None or any(
        _allows(pattern, part)
        for pattern in rule.patterns
        if isinstance(pattern, CommandPattern | RedirectPattern)
    )


def _allows(pattern: CommandPattern | RedirectPattern, part: Part) -> bool:
    match pattern, part:
        case CommandPattern(), ParsedCommand():
            return _allows_command(pattern, part)
        case RedirectPattern(), Redirect():
            same = pattern.writes == part.writes and not part.folder_unknown
            return same and _allows_file(pattern, part.target)
        case _:
            return False


def _allows_command(pattern: CommandPattern, command: ParsedCommand) -> bool:
    assignments = [word.text for word in command.assignments]
    if command.no_rule or [word.text for word in pattern.assignments] != assignments:
        return False
    if any(word.kind != "plain" for word in command.assignments):
        return False
    if _allows_words(pattern, command.words):
        return True
    inner = unwrap(command.words)
    return inner is not command.words and _allows_words(pattern, inner)


def _allows_words(pattern: CommandPattern, words: tuple[Word, ...]) -> bool:
    fixed = len(pattern.words)
    if not words or words[0].kind != "plain" or words[0].text != pattern.words[0].text:
        return False
    if list(map(_identity, pattern.words)) != list(map(_identity, words[:fixed])):
        return False
    if len(words) == fixed:
        return True
    known = all(word.kind != "unknown" for word in words[fixed:])
    return pattern.more and known and all(index < fixed for index in find_unsafe_words(words))


def _identity(word: Word) -> tuple[str, str]:
    return word.kind, word.text if word.kind == "plain" else word.source


def _allows_file(pattern: RedirectPattern, target: Word) -> bool:
    is_device = normalize_path(target.text).startswith("/dev/")
    return target.kind == "plain" and not is_device and allows_path(pattern.glob, target.text)


def suggest_rule(tool: str, part: Part) -> str:
    """Return the narrowest rule of the tool that covers one part, or "" if none may be offered.

    None is offered for shells, interpreters, wrappers, assignments, devices and unknown words.
    """
    if isinstance(part, Redirect):
        sign = ">" if part.writes else "<"
        text = f"{tool}({sign} {shlex.quote(normalize_path(part.target.text))})"
    else:
        words = unwrap(part.words)
        if not words or part.assignments or is_runner(program_name(words[0].text)):
            return ""
        text = f"{tool}({' '.join(map(_source, words))})"
    if len(text) > MAX_SUGGESTED_CHARS:
        return ""
    try:
        rule = parse_allow_rule(text, {tool: (CommandTarget(""),)})
    except RuleError:
        return ""
    return text if allows_part(rule, part) else ""


def _source(word: Word) -> str:
    is_verbatim = word.kind == "glob" or word.source == word.text
    return word.source if is_verbatim else shlex.quote(word.text)
