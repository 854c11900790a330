"""Requests in the `allowed-tools` of a skill, and the permission rules a person may grant for them.

The public format writes `Bash(git:*)`, `Write(notes/**)`, `WebFetch(domain:example.com)`. An entry
becomes a rule that allows the same or less, or no rule.
"""

import posixpath
import re
import shlex
from collections.abc import Sequence

from internal.agent.domain.permissions.rules import (
    CommandPattern,
    RuleError,
    parse_allow_rule,
    parse_rule,
)
from internal.agent.domain.permissions.shell.program_table import INTERPRETERS, WRAPPERS
from internal.agent.domain.permissions.shell.programs import program_name
from internal.agent.domain.permissions.targets import CommandTarget, PathTarget, UrlTarget
from internal.agent.domain.tools import ToolSpec, targets_by_tool
from internal.agent.ports.skills import RequestedTool, RuleRefusal
from internal.skills.library import Skill

MAX_REQUESTED = 100
MAX_ENTRY_CHARS = 500

_ENTRY = re.compile(r"([A-Za-z_]{1,64})(?:\((.*)\))?", re.DOTALL)
_PUBLIC_NAMES = {
    "bash": "shell",
    "edit": "edit_file",
    "glob": "list_dir",
    "grep": "search_files",
    "ls": "list_dir",
    "multiedit": "edit_file",
    "read": "read_file",
    "webfetch": "web_fetch",
    "write": "write_file",
}
"""Tools of the public format that Larkspur has under another name."""
_COMMAND = re.compile(r"[\w ./:@%+,='\"-]+")  # no operator, expansion, wildcard or comment
_PATH = re.compile(r"(?:\./)?([\w.*?@+,=-][\w ./*?@+,=-]*)")  # not absolute, not ~


class _NoRule(Exception):
    def __init__(self, refusal: RuleRefusal) -> None:
        self.refusal = refusal


def requested_tools(skill: Skill, specs: Sequence[ToolSpec]) -> list[RequestedTool]:
    """Return the entries of `allowed-tools`, at most `MAX_REQUESTED`.

    `specs` are all tools. Every rule is one that `parse_allow_rule` accepts.
    """
    entries = skill.file.allowed_tools if skill.file else ()
    return [_requested(entry, skill, specs) for entry in entries[:MAX_REQUESTED]]


def _requested(entry: str, skill: Skill, specs: Sequence[ToolSpec]) -> RequestedTool:
    refusal: RuleRefusal = "cannot be expressed"
    if len(entry) <= MAX_ENTRY_CHARS:
        try:
            rule = _rule(entry.strip(), skill, specs)
            parse_allow_rule(rule, targets_by_tool(specs))
            return RequestedTool(entry, rule, "")
        except _NoRule as outcome:
            refusal = outcome.refusal
        except RuleError:
            pass
    return RequestedTool(entry[:MAX_ENTRY_CHARS], "", refusal)


def _rule(entry: str, skill: Skill, specs: Sequence[ToolSpec]) -> str:
    """Return the rule for an entry, which is still to be checked.

    Raises:
        _NoRule: there is none, or none may be offered.
        RuleError: the command in the entry cannot be parsed.
    """
    if entry == "*":
        raise _NoRule("too wide")
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise _NoRule("cannot be expressed")
    name, pattern = found[1].casefold(), found[2]
    tool = _PUBLIC_NAMES.get(name, name)
    spec = next((each for each in specs if each.name == tool), None)
    if spec is None:
        raise _NoRule("unknown tool")
    if spec.risk in {"read", "ui"}:
        raise _NoRule("no rule needed")
    match spec.targets:
        case (CommandTarget(), *_):
            return f"{tool}({_command(spec, (pattern or '').strip(), skill)})"
        case (PathTarget(), *_):
            return tool if pattern is None else f"{tool}({_path(pattern.strip())})"
        case (UrlTarget(), *_):
            host = (pattern or "*").strip().removeprefix("domain:")
            if host == "*":
                raise _NoRule("too wide")
            return f"{tool}({host})"
        case _:
            raise _NoRule("cannot be expressed")


def _path(pattern: str) -> str:
    found = _PATH.fullmatch(pattern)
    if found is None:
        raise _NoRule("cannot be expressed")
    return found[1]


def _command(spec: ToolSpec, pattern: str, skill: Skill) -> str:
    """Return the pattern of a rule for a command.

    Raises:
        _NoRule, RuleError: there is none.
    """
    has_more = pattern == "*" or pattern.endswith((":*", " *"))
    command = pattern[: -len(":*")].strip() if has_more else pattern
    if not command:
        raise _NoRule("too wide")
    if not _COMMAND.fullmatch(command):
        raise _NoRule("cannot be expressed")
    parsed = parse_rule(f"{spec.name}({command})", {spec.name: spec.targets}).patterns
    if not parsed or not isinstance(parsed[0], CommandPattern) or parsed[0].assignments:
        raise _NoRule("cannot be expressed")
    words = [word.text for word in parsed[0].words]
    program = program_name(words[0])
    if program in WRAPPERS:
        raise _NoRule("runs other code")
    if "/" in words[0] or program in INTERPRETERS:
        at = 0 if "/" in words[0] else 1
        words[at:] = [_script(words[at:], skill), *words[at + 1 :]]
    return f"{shlex.join(words)}{' *' if has_more else ''}"


def _script(words: Sequence[str], skill: Skill) -> str:
    """Return the absolute path of a script, the first of the words, that no tool can change.

    Raises:
        _NoRule: it is not a file of the skill, or of a skill that is not in the home folder.
    """
    path = posixpath.normpath(words[0]) if words else ""
    if skill.origin != "own" or all(path != each.path or each.link for each in skill.entries):
        raise _NoRule("runs other code")
    return str(skill.folder.absolute() / path)
