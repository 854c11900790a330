"""Rules over shell commands: which parts a rule covers, and which it denies, however disguised."""

import re
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from internal.agent.domain.permissions.path_host_rules import covers_path, denies_path, normal_path
from internal.agent.domain.permissions.rules import (
    CommandRule,
    RedirectRule,
    Rule,
    RuleError,
    ToolRule,
    parse_allow_rule,
)
from internal.agent.domain.permissions.shell.parser import (
    ParsedCommand,
    Redirect,
    Script,
    read_script,
)
from internal.agent.domain.permissions.shell.programs import (
    dangers,
    operand_places,
    program_name,
    reads_commands,
    runs_others,
    runs_text,
    unwrapped,
)
from internal.agent.domain.permissions.shell.words import Word

Part = ParsedCommand | Redirect
_HARMLESS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})
_MAX_NESTING = 4
_UNREAD = Script((), "it is nested too deep")
_ANYTHING = ParsedCommand((Word("", "unknown", ""),))  # what nobody can read may be any command
_MAY_HOLD_COMMANDS = re.compile(r"[^\w./:,@%+-]")
_BORDERS = re.compile(r"^-\w|[=!'\":,]|(?<![A-Za-z-])e[ \t]")


def harmless(part: Part) -> bool:
    """Whether a part needs no rule: it discards output, or reads a file inside the workspace."""
    if isinstance(part, ParsedCommand) or part.target.kind != "plain":
        return False
    path = part.target.text
    inside = not part.writes and not part.adrift and covers_path("**", path)
    return path in _HARMLESS or inside


def covers(rule: Rule, part: Part) -> bool:
    """Whether an allow rule covers one part of a command."""
    match rule, part:
        case (ToolRule(tool="shell"), _):
            return True
        case (CommandRule(), ParsedCommand()):
            return _covers_command(rule, part)
        case (RedirectRule(), Redirect()):
            alike = rule.writes == part.writes and not part.adrift
            return alike and _covers_target(rule, part.target)
        case _:
            return False


def _covers_command(rule: CommandRule, command: ParsedCommand) -> bool:
    if command.asks or [a.text for a in rule.assignments] != [a.text for a in command.assignments]:
        return False
    if any(word.kind != "plain" for word in command.assignments):
        return False
    if _covers_words(rule, command.words):
        return True
    inner = unwrapped(command.words)
    return inner is not command.words and _covers_words(rule, inner)


def _covers_words(rule: CommandRule, words: tuple[Word, ...]) -> bool:
    fixed = len(rule.words)
    if not words or words[0].kind != "plain" or words[0].text != rule.words[0].text:
        return False
    if not _same(rule.words, words[:fixed]):
        return False
    if len(words) == fixed:
        return True
    known = all(word.kind != "unknown" for word in words[fixed:])
    return rule.more and known and all(place < fixed for place in dangers(words))


def _same(rule: Sequence[Word], words: Sequence[Word]) -> bool:
    return [_identity(word) for word in rule] == [_identity(word) for word in words]


def _identity(word: Word) -> tuple[str, str]:
    return word.kind, word.text if word.kind == "plain" else word.source


def _covers_target(rule: RedirectRule, target: Word) -> bool:
    device = normal_path(target.text).startswith("/dev/")
    return target.kind == "plain" and not device and covers_path(rule.glob, target.text)


def reach(script: Script) -> tuple[Part, ...]:
    """Every part, and whatever wrappers and dangerous options may start from their arguments."""
    return tuple(_reach(script, _MAX_NESTING))


def denies(rule: CommandRule | RedirectRule, parts: Sequence[Part]) -> bool | None:
    """Whether a deny rule matches any of the parts from `reach`; None if nobody can tell.

    It matches programs by name in any folder, and looks past general options.
    """
    verdicts: list[bool | None] = []
    for part in parts:
        if isinstance(part, Redirect):
            verdicts.append(_denies_redirect(rule, part))
        elif isinstance(rule, CommandRule):
            verdicts.append(_denies_command(rule, part.words))
    return _gravest(verdicts)


def _gravest(verdicts: Sequence[bool | None]) -> bool | None:
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _reach(script: Script, depth: int) -> Iterator[Part]:
    for part in script.parts:
        yield part
        if isinstance(part, Redirect) or not part.words:
            continue
        yield from _by_another_name(part.words)
        started = runs_others(program_name(part.words[0].text)) or part.asks
        if started or dangers(part.words):
            yield from _started(part.words, depth)


def _by_another_name(words: tuple[Word, ...]) -> Iterator[Part]:
    """Git's commands are also programs of their own: `git-push` is `git push`."""
    head, dash, verb = words[0].text.rpartition("/")[2].partition("-")
    if head == "git" and dash and words[0].kind == "plain":
        yield ParsedCommand((Word("git", "plain", "git"), Word(verb, "plain", verb), *words[1:]))


def _started(words: tuple[Word, ...], depth: int) -> Iterator[Part]:
    shell = runs_text(words)
    if any(reads_commands(words[place:]) for place in range(len(words))):
        yield _ANYTHING
    for place, word in enumerate(words[1:], start=1):
        yield ParsedCommand(words[place:])
        for text in _commands_in(word.text):
            script = read_script(text) if depth else _UNREAD
            yield from _reach(script, depth - 1)
            if shell and script.trouble:
                yield _ANYTHING


def _commands_in(text: str) -> Iterator[str]:
    """What may be a command in a word: all of it, its quoted parts, what follows `=`, `:` or -x."""
    if _MAY_HOLD_COMMANDS.search(text):
        yield text
        yield from filter(str.strip, _BORDERS.split(text))


def _denies_redirect(rule: Rule, part: Redirect) -> bool | None:
    if not isinstance(rule, RedirectRule) or rule.writes != part.writes:
        return False
    if part.target.kind != "plain":
        return None
    return denies_path(rule.glob, part.target.text) or (None if part.adrift else False)


def _denies_command(rule: CommandRule, words: tuple[Word, ...]) -> bool | None:
    if not words:
        return False
    named = _denies_program(rule.words[0].text, words[0])
    rest = rule.words[1:]
    if not named:
        return named
    size = len(rest) + 1
    places = operand_places(words) or [1]
    return _gravest([_denies_words(rest, words[p : p + size], more=rule.more) for p in places])


def _denies_program(name: str, word: Word) -> bool | None:
    text = word.text.replace("\\", "/").rpartition("/")[2].casefold()
    wanted = name.rpartition("/")[2].casefold()
    if wanted in {text, program_name(text)}:
        return True
    if word.kind == "glob":
        return None if fnmatchcase(wanted, text) else False
    return False if word.kind == "plain" else None


def _denies_words(rule: Sequence[Word], words: Sequence[Word], *, more: bool) -> bool | None:
    """Judge the words from one place on; `words` is cut one longer than the rule."""
    if any(
        theirs.kind == "plain" and ours.text != theirs.text
        for ours, theirs in zip(rule, words, strict=False)
    ):
        return False
    if any(word.kind != "plain" for word in (words[: len(rule)] if more else words)):
        return None
    return len(words) == len(rule) or (more and len(words) > len(rule))


def suggestion(part: Part) -> str:
    """The narrowest rule that covers one part, or "" if none may be offered.

    None is offered for shells, interpreters, wrappers, assignments, devices and unknown words.
    """
    if isinstance(part, Redirect):
        sign = ">" if part.writes else "<"
        text = f"shell({sign} {shlex.quote(normal_path(part.target.text))})"
    else:
        words = unwrapped(part.words)
        if not words or part.assignments or runs_others(program_name(words[0].text)):
            return ""
        shown = (_written(word) for word in words)
        text = f"shell({' '.join(shown)})"
    try:
        return text if covers(parse_allow_rule(text), part) else ""
    except RuleError:
        return ""


def _written(word: Word) -> str:
    as_it_stands = word.kind == "glob" or word.source == word.text
    return word.source if as_it_stands else shlex.quote(word.text)
