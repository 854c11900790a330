"""Permission rules as text: `tool` or `tool(pattern)`. One reader for every door and for `judge`.

What a rule covers or denies is decided beside the things it names: `shell_rules`, `place_rules`.
"""

import re
from functools import lru_cache

import msgspec

from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.permissions.shell.parser import ParsedCommand, read_script
from internal.agent.domain.permissions.shell.programs import INTERPRETERS, WRAPPERS, program_name
from internal.agent.domain.permissions.shell.raw_text import odd_character
from internal.agent.domain.permissions.shell.words import Word

PATH_TOOLS = ("read_file", "write_file", "edit_file", "list_dir", "search_files")
_ABOUT = ("--version", "--help", "-V")
_RULE = re.compile(r"(?P<tool>[A-Za-z][A-Za-z0-9_.:-]*)(?:\((?P<pattern>.*)\))?", re.DOTALL)
_HOST = re.compile(r"(?P<any>\*\.)?(?P<host>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::(?P<port>\d{1,5}))?")


class RuleError(InvalidRequest, ValueError):  # a ValueError, so that msgspec reports it as bad data
    """A permission rule that cannot be read. The sentence says why and gives an example."""


class ToolRule(msgspec.Struct, frozen=True):
    """Every call of a tool."""

    text: str
    tool: str


class CommandRule(msgspec.Struct, frozen=True):
    """A shell command: these words, and with `more` any known words after them."""

    text: str
    words: tuple[Word, ...]
    more: bool
    assignments: tuple[Word, ...] = ()
    tool: str = "shell"


class RedirectRule(msgspec.Struct, frozen=True):
    """Files the shell itself opens, for writing or for reading only. `glob` is of path segments."""

    text: str
    writes: bool
    glob: str
    tool: str = "shell"


class PathRule(msgspec.Struct, frozen=True):
    """Calls of a file tool on paths that match a glob: `*` within a segment, `**` any segments."""

    text: str
    tool: str
    glob: str


class HostRule(msgspec.Struct, frozen=True):
    """Fetches from one host, or with `below` from every host under it. `port` None: the usual."""

    text: str
    host: str
    below: bool
    port: int | None
    tool: str = "web_fetch"


Rule = ToolRule | CommandRule | RedirectRule | PathRule | HostRule


def parse_rule(text: str) -> Rule:
    """Read a rule.

    Raises:
        RuleError: The text is no rule; the sentence says what is wrong and shows one that works.
    """
    return _parse(text)


@lru_cache(maxsize=1024)
def parse_allow_rule(text: str) -> Rule:
    """Read a rule that is to allow something; stricter, as not every rule may.

    Raises:
        RuleError: As `parse_rule`, or the rule would hand over the whole shell in disguise.
    """
    rule = _parse(text)
    if isinstance(rule, CommandRule):
        _check_runner(rule)
    if isinstance(rule, PathRule) and rule.glob.startswith("/"):
        raise RuleError(f"{text}: tools stay inside the workspace; write {rule.tool}(notes/**)")
    return rule


@lru_cache(maxsize=1024)
def _parse(text: str) -> Rule:
    found = _RULE.fullmatch(text.strip())
    if not found or odd_character(text):
        raise RuleError(
            f"{text[:80]!a} is not a rule; write a tool or tool(pattern), such as {_EG}"
        )
    tool, pattern = found["tool"], found["pattern"]
    if pattern is None:
        return ToolRule(text, tool)
    pattern = pattern.strip()
    if tool == "shell":
        return _shell_rule(text, pattern)
    if tool in PATH_TOOLS:
        return _path_rule(text, tool, pattern)
    if tool == "web_fetch":
        return _host_rule(text, pattern)
    raise RuleError(f"{text}: {tool} takes no pattern; write {tool} alone for every call of it")


_EG = "read_file, shell(git status) or write_file(notes/**)"


def _shell_rule(text: str, pattern: str) -> CommandRule | RedirectRule:
    script = read_script(pattern)
    if script.trouble:
        raise RuleError(f"{text}: {script.trouble}; write one command, such as shell(git log *)")
    if len(script.parts) != 1:
        raise RuleError(f"{text}: a rule is one command; write a rule for each part")
    part = script.parts[0]
    if isinstance(part, ParsedCommand):
        return _command_rule(text, part)
    if part.target.kind not in {"plain", "glob"}:
        raise RuleError(f"{text}: name the file, such as shell(> out/*)")
    literal = part.target.kind == "plain"
    glob = re.sub(r"([*?])", r"[\1]", part.target.text) if literal else part.target.text
    if ".." in glob.split("/"):
        raise RuleError(f"{text}: write the path without .., such as shell(> out/*)")
    return RedirectRule(text, part.writes, glob)


def _command_rule(text: str, command: ParsedCommand) -> CommandRule:
    words = command.words
    more = bool(words) and words[-1].source == "*"
    words = words[:-1] if more else words
    if not words or words[0].kind != "plain" or not words[0].text:
        raise RuleError(f"{text}: begin with a program, such as shell(git log *); shell allows all")
    if any(word.kind not in {"plain", "glob"} for word in (*words, *command.assignments)):
        raise RuleError(
            f"{text}: * stands alone at the end, such as shell(git log *); no variables"
        )
    return CommandRule(text, words, more, command.assignments)


def _check_runner(rule: CommandRule) -> None:
    name = program_name(rule.words[0].text)
    if name == "[[":
        raise RuleError(f"{rule.text}: [[ evaluates what it compares; write test, shell(test *)")
    rest = [word.text for word in rule.words[1:]]
    if name in WRAPPERS and rule.more:
        raise RuleError(
            f"{rule.text}: {name} runs any program; allow the exact command, such as"
            f" shell({name} git status), or everything with shell"
        )
    module = rest[:1] == ["-m"] and len(rest) > 1
    script = bool(rest) and (not rest[0].startswith("-") or rest[0] in _ABOUT)
    if name in INTERPRETERS and not (module or script or (rest[1:] and not rule.more)):
        raise RuleError(
            f"{rule.text}: {name} runs any code; name the script, such as"
            f" shell({name} scripts/build *), or allow everything with shell"
        )


def _path_rule(text: str, tool: str, pattern: str) -> PathRule:
    if not pattern or "\\" in pattern or ".." in pattern.split("/"):
        raise RuleError(
            f"{text}: write a path with / and * and without .., such as {tool}(notes/**)"
        )
    return PathRule(text, tool, pattern)


def _host_rule(text: str, pattern: str) -> HostRule:
    found = _HOST.fullmatch(pattern.lower())
    if not found:
        raise RuleError(
            f"{text}: write a host name in ASCII, such as web_fetch(example.com),"
            " web_fetch(*.example.com) or web_fetch(example.com:8443)"
        )
    port = int(found["port"]) if found["port"] else None
    return HostRule(text, found["host"], bool(found["any"]), port)
