"""Permission rules as text: `tool` or `tool(pattern)`.

`network(host)`, `read_outside(path)` and `write_outside(path)` are for the commands of all tools.

The kind of a pattern follows from the targets of the tool: a path glob for a path, a host name for
an address, a command for a command line. A pattern covers every target of its kind.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta

from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.permissions.paths import MAX_PATH_CHARS, normalize_path
from internal.agent.domain.permissions.shell.parser import ParsedCommand, parse_script
from internal.agent.domain.permissions.shell.program_table import INTERPRETERS, WRAPPERS
from internal.agent.domain.permissions.shell.programs import program_name
from internal.agent.domain.permissions.shell.words import Word
from internal.agent.domain.permissions.targets import (
    SANDBOX_TARGETS,
    CodeTarget,
    CommandTarget,
    NetworkTarget,
    OutsidePathTarget,
    PathTarget,
    SandboxTarget,
    Target,
    ToolTargets,
    UrlTarget,
)
from internal.agent.domain.text import find_invisible
from internal.normal_forms.addresses import parse_host, reached_host

_INFO_OPTIONS = ("--version", "--help", "-V")
_SCHEMA = {"pattern": r"^\s*[A-Za-z][A-Za-z0-9_.:-]*(\([\s\S]*\))?\s*$"}
MAX_RULES = 100
"""Maximum number of rules in a list of a request."""
MAX_RULE_CHARACTERS = 10_000
"""Of all rules of a request together: they are parsed in less than 50 ms."""
RuleText = Annotated[str, Meta(max_length=MAX_RULE_CHARACTERS, extra_json_schema=_SCHEMA)]
"""A rule that is still to be parsed; its schema tells the shape, errors come from the parser."""
_RULE = re.compile(r"(?P<tool>[A-Za-z][A-Za-z0-9_.:-]*)(?:\((?P<pattern>.*)\))?", re.DOTALL)
_HOST = re.compile(
    r"(?:(?P<any>\*\.)?(?P<host>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)|\[(?P<ipv6>[0-9a-f:.]+)\])"
    r"(?::(?P<port>\d{1,5}))?"
)
_MAX_PORT = 65_535

_KERNEL_FOLDERS = ("/dev", "/proc", "/run", "/sys", "/var/run")
_OF_THE_SYSTEM = ("/", "/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr", "/var", *_KERNEL_FOLDERS)


class RuleError(InvalidRequest, ValueError):  # a ValueError, so that msgspec reports it as bad data
    """A permission rule that cannot be parsed. The message has the reason and an example."""


def check_rule_lengths(rules: Iterable[str]) -> None:
    """Check that the rules of a request are not too long together.

    Raises:
        RuleError: they are.
    """
    length = sum(map(len, rules))
    if length > MAX_RULE_CHARACTERS:
        raise RuleError(
            f"The rules have {length:,} characters together; the maximum is"
            f" {MAX_RULE_CHARACTERS:,}.",
            reason_code="rules_too_long",
            count=length,
            limit=MAX_RULE_CHARACTERS,
        )


class CommandPattern(msgspec.Struct, frozen=True):
    """A command: these words; with `more`, followed by any known words."""

    words: tuple[Word, ...]
    more: bool
    assignments: tuple[Word, ...] = ()


class RedirectPattern(msgspec.Struct, frozen=True):
    """Files that the shell itself opens, for writing or for reading only."""

    writes: bool
    glob: str


class PathPattern(msgspec.Struct, frozen=True):
    """Paths that match a glob: `*` within a segment, `**` across segments."""

    glob: str


class HostPattern(msgspec.Struct, frozen=True):
    """One host, or with `subdomains` every host below it. `port` None is the default port.

    With `subdomains` and the empty host it is every host.
    """

    host: str
    subdomains: bool
    port: int | None


class OutsidePattern(msgspec.Struct, frozen=True):
    """An absolute path outside of the workspace, and all that is below it."""

    path: str


Pattern = CommandPattern | RedirectPattern | PathPattern | HostPattern | OutsidePattern


class Rule(msgspec.Struct, frozen=True):
    """A parsed rule. If `patterns` is None, it covers every call of the tool.

    A tool with targets of several kinds has a pattern for each kind as which the text can be read.
    """

    text: str
    tool: str
    patterns: tuple[Pattern, ...] | None = None


def split_rule(text: str) -> tuple[str, str | None]:
    """Return the tool of a rule and its pattern, None if it has no pattern.

    Raises:
        RuleError: the text is not a rule.
    """
    match = _RULE.fullmatch(text.strip())
    if not match or find_invisible(text):
        raise RuleError(
            f"{text[:80]!a} is not a rule; write the name of a tool, or tool(pattern)"
            " for some of its calls",
            reason_code="not_a_rule",
            rule=text[:80],
        )
    pattern = match["pattern"]
    return match["tool"], None if pattern is None else pattern.strip()


def parse_rule(text: str, targets: ToolTargets) -> Rule:
    """Parse a rule that denies.

    Raises:
        RuleError: the text is not a rule for one of these tools.
    """
    tool, _ = split_rule(text)
    return _parse(text, targets.get(tool, ()), allow=False)


def parse_allow_rule(text: str, targets: ToolTargets) -> Rule:
    """Parse a rule that allows; not every rule may.

    Raises:
        RuleError: as `parse_rule`, or the rule would in effect allow every command.
    """
    tool, _ = split_rule(text)
    return _parse(text, targets.get(tool, ()), allow=True)


@lru_cache(maxsize=1024)
def _parse(text: str, targets: tuple[Target, ...], *, allow: bool) -> Rule:
    tool, pattern = split_rule(text)
    of_sandbox = SANDBOX_TARGETS.get(tool)
    if pattern is None:
        if allow and isinstance(of_sandbox, OutsidePathTarget):
            raise RuleError(
                f"{text}: name a path, such as {tool}(/srv/data)",
                reason_code="rule_needs_path",
                rule=text,
                tool=tool,
            )
        return Rule(text, tool)
    patterns: list[Pattern] = []
    errors: list[RuleError] = []
    # a pattern of a tool with such targets would be taken for a host or a path
    own = [target for target in targets if not isinstance(target, SandboxTarget)]
    kinds: dict[type, Target] = {type(target): target for target in own}
    for target in kinds.values() if of_sandbox is None else (of_sandbox,):
        try:
            patterns.append(_parse_pattern(target, text, tool, pattern, allow=allow))
        except RuleError as error:
            errors.append(error)
    if patterns:
        return Rule(text, tool, tuple(patterns))
    if errors:
        raise errors[0]
    raise RuleError(
        f"{text}: {tool} takes no pattern; write {tool} alone for every call of it",
        reason_code="rule_takes_no_pattern",
        rule=text,
        tool=tool,
    )


def _parse_pattern(target: Target, text: str, tool: str, pattern: str, *, allow: bool) -> Pattern:
    match target:
        case PathTarget():
            return _path_pattern(text, tool, pattern, allow=allow)
        case UrlTarget() | NetworkTarget():
            return parse_host_pattern(pattern, text, tool)
        case OutsidePathTarget():
            return parse_outside_pattern(pattern, text)
        case CommandTarget():
            parsed = _shell_pattern(text, tool, pattern)
            if allow and isinstance(parsed, CommandPattern):
                _check_runner(text, tool, parsed)
            return parsed
        case CodeTarget():
            raise RuleError(
                f"{text}: {tool} takes no pattern",
                reason_code="rule_takes_no_pattern",
                rule=text,
                tool=tool,
            )


def _shell_pattern(text: str, tool: str, pattern: str) -> CommandPattern | RedirectPattern:
    script = parse_script(pattern)
    if script.problem:
        raise RuleError(
            f"{text}: {script.problem}; write one command, such as {tool}(git log *)",
            reason_code="rule_not_understood",
            rule=text,
            tool=tool,
            problem=script.problem,
        )
    if len(script.parts) != 1:
        raise RuleError(
            f"{text}: a rule is one command; write a rule for each part",
            reason_code="rule_one_command",
            rule=text,
        )
    part = script.parts[0]
    if isinstance(part, ParsedCommand):
        return _command_pattern(text, tool, part)
    if part.target.kind not in {"plain", "glob"}:
        raise RuleError(
            f"{text}: name the file, such as {tool}(> out/*)",
            reason_code="rule_names_file",
            rule=text,
            tool=tool,
        )
    literal = part.target.kind == "plain"
    glob = re.sub(r"([*?])", r"[\1]", part.target.text) if literal else part.target.text
    if ".." in glob.split("/"):
        raise RuleError(
            f"{text}: write the path without .., such as {tool}(> out/*)",
            reason_code="rule_without_dots",
            rule=text,
            tool=tool,
        )
    return RedirectPattern(part.writes, glob)


def _command_pattern(text: str, tool: str, command: ParsedCommand) -> CommandPattern:
    words = command.words
    more = bool(words) and words[-1].source == "*"
    words = words[:-1] if more else words
    if not words or words[0].kind != "plain" or not words[0].text:
        raise RuleError(
            f"{text}: begin with a program, such as {tool}(git log *); {tool} allows all",
            reason_code="rule_needs_program",
            rule=text,
            tool=tool,
        )
    if any(word.kind not in {"plain", "glob"} for word in (*words, *command.assignments)):
        raise RuleError(
            f"{text}: * stands alone at the end, such as {tool}(git log *); no variables",
            reason_code="rule_star_at_end",
            rule=text,
            tool=tool,
        )
    return CommandPattern(words, more, command.assignments)


def _check_runner(text: str, tool: str, pattern: CommandPattern) -> None:
    name = program_name(pattern.words[0].text)
    if name == "[[":
        raise RuleError(
            f"{text}: [[ evaluates what it compares; write test, {tool}(test *)",
            reason_code="rule_evaluates",
            rule=text,
            tool=tool,
        )
    rest = [word.text for word in pattern.words[1:]]
    if name in WRAPPERS and pattern.more:
        raise RuleError(
            f"{text}: {name} runs any program; allow the exact command, such as"
            f" {tool}({name} git status), or everything with {tool}",
            reason_code="rule_runs_any_program",
            rule=text,
            tool=tool,
            program=name,
        )
    module = rest[:1] == ["-m"] and len(rest) > 1
    script = bool(rest) and (not rest[0].startswith("-") or rest[0] in _INFO_OPTIONS)
    if name in INTERPRETERS and not (module or script or (rest[1:] and not pattern.more)):
        raise RuleError(
            f"{text}: {name} runs any code; name the script, such as"
            f" {tool}({name} scripts/build *), or allow everything with {tool}",
            reason_code="rule_runs_any_code",
            rule=text,
            tool=tool,
            program=name,
        )


def _path_pattern(text: str, tool: str, pattern: str, *, allow: bool) -> PathPattern:
    if not pattern or "\\" in pattern or ".." in pattern.split("/"):
        raise RuleError(
            f"{text}: write a path with / and * and without .., such as {tool}(notes/**)",
            reason_code="rule_path_form",
            rule=text,
            tool=tool,
        )
    if allow and pattern.startswith("/"):
        raise RuleError(
            f"{text}: tools stay inside the workspace; write {tool}(notes/**)",
            reason_code="rule_inside_workspace",
            rule=text,
            tool=tool,
        )
    return PathPattern(pattern)


def parse_outside_pattern(pattern: str, text: str) -> OutsidePattern:
    """Parse an absolute path; `text` is the rule, for the error message.

    Raises:
        RuleError: it is invalid, or commands can never have it.
    """
    is_plain = pattern.isprintable() and not find_invisible(pattern) and "*" not in pattern
    is_absolute = pattern.startswith("/") and ".." not in pattern.split("/")
    if not (is_plain and is_absolute) or len(pattern) > MAX_PATH_CHARS:
        raise RuleError(
            f"{text}: write an absolute path without * and .., such as /srv/data",
            reason_code="rule_absolute_path",
            rule=text,
        )
    path = normalize_path(pattern)
    if path in _OF_THE_SYSTEM or path.startswith(tuple(f"{one}/" for one in _KERNEL_FOLDERS)):
        raise RuleError(
            f"{text}: {path} cannot be given to commands; name a folder in it",
            reason_code="rule_path_of_system",
            rule=text,
            path=path,
        )
    return OutsidePattern(path)


def parse_host_pattern(pattern: str, text: str, tool: str) -> HostPattern:
    """Parse host, *.host, [IPv6] or one of them with a port; `text` is the rule, for the error.

    Raises:
        RuleError: the pattern is none of these.
    """
    match = _HOST.fullmatch(pattern.lower())
    port = int(match["port"]) if match and match["port"] else None
    if not match or (port is not None and not 0 < port <= _MAX_PORT):
        raise RuleError(
            f"{text}: write a host name in ASCII or an address, with one TCP port or none, such as"
            f" {tool}(example.com), {tool}(*.example.com), {tool}(example.com:8443) or"
            f" {tool}([::1]:5432)",
            reason_code="rule_host_form",
            rule=text,
            tool=tool,
        )
    if match["ipv6"] is None:
        return HostPattern(match["host"], bool(match["any"]), port)
    try:
        address = parse_host(match["ipv6"], bracketed=True)
    except ValueError as error:
        raise RuleError(
            f"{text}: {error}", reason_code="rule_address", rule=text, detail=str(error)
        ) from error
    return HostPattern(reached_host(address), subdomains=False, port=port)


class PermissionRule(msgspec.Struct, frozen=True):
    """A rule that a person granted. `scope` (JSON: `place`) is a session, a chat or a principal.

    `question_id` is "" if it was granted at the review of a skill.
    """

    number: int
    scope: str = msgspec.field(name="place")
    rule: str
    principal: str
    via: str
    question_id: str
    created: str
