"""Match the parts of a shell command against allow and deny patterns."""

import re
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from internal.agent.domain.permissions.paths import allows_path, denies_path, normalize_path
from internal.agent.domain.permissions.rules import (
    CommandPattern,
    RedirectPattern,
    Rule,
    RuleError,
    parse_allow_rule,
)
from internal.agent.domain.permissions.shell.parser import (
    ParsedCommand,
    Redirect,
    Script,
    parse_script,
)
from internal.agent.domain.permissions.shell.programs import (
    find_unsafe_words,
    is_runner,
    operand_indexes,
    program_name,
    reads_commands_from_input,
    runs_shell_text,
    unwrap,
)
from internal.agent.domain.permissions.shell.words import Word
from internal.agent.domain.permissions.targets import CommandTarget

Part = ParsedCommand | Redirect
_SAFE_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})
_MAX_NESTING = 4
_TOO_DEEP = Script((), "it is nested too deep")
_UNKNOWN_COMMAND = ParsedCommand((Word("", "unknown", ""),))
_MAY_HOLD_COMMANDS = re.compile(r"[^\w./:,@%+-]")
_BORDERS = re.compile(r"^-\w|[=!'\":,]|(?<![A-Za-z-])e[ \t]")


def needs_no_rule(part: Part) -> bool:
    """Return True for a redirect that discards output or reads a file inside the workspace."""
    if isinstance(part, ParsedCommand) or part.target.kind != "plain":
        return False
    path = part.target.text
    is_inside = not part.writes and not part.folder_unknown and allows_path("**", path)
    return path in _SAFE_DEVICES or is_inside


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


def expand_parts(script: Script) -> tuple[Part, ...]:
    """Return every part, and the commands that wrappers and options may start."""
    return tuple(_expand(script, _MAX_NESTING))


def _expand(script: Script, depth: int) -> Iterator[Part]:
    for part in script.parts:
        yield part
        if isinstance(part, Redirect) or not part.words:
            continue
        yield from _git_alias(part.words)
        runs_more = is_runner(program_name(part.words[0].text)) or part.no_rule
        if runs_more or find_unsafe_words(part.words):
            yield from _started(part.words, depth)


def _git_alias(words: tuple[Word, ...]) -> Iterator[Part]:
    """Yield `git push` for `git-push`: the subcommands of git are also programs."""
    head, dash, verb = words[0].text.rpartition("/")[2].partition("-")
    if head == "git" and dash and words[0].kind == "plain":
        yield ParsedCommand((Word("git", "plain", "git"), Word(verb, "plain", verb), *words[1:]))


def _started(words: tuple[Word, ...], depth: int) -> Iterator[Part]:
    runs_text = runs_shell_text(words)
    if any(reads_commands_from_input(words[index:]) for index in range(len(words))):
        yield _UNKNOWN_COMMAND
    for index, word in enumerate(words[1:], start=1):
        yield ParsedCommand(words[index:])
        for text in _embedded_commands(word.text):
            script = parse_script(text) if depth else _TOO_DEEP
            yield from _expand(script, depth - 1)
            if runs_text and script.problem:
                yield _UNKNOWN_COMMAND


def _embedded_commands(text: str) -> Iterator[str]:
    """Yield what may be a command in a word: all of it, and the parts after quotes and signs."""
    if _MAY_HOLD_COMMANDS.search(text):
        yield text
        yield from filter(str.strip, _BORDERS.split(text))


def denies(
    patterns: Sequence[CommandPattern | RedirectPattern], parts: Sequence[Part]
) -> bool | None:
    """Return True if a deny pattern matches one of the expanded parts, None if that is unknown.

    A program matches by name in any folder, and the words after it past general options.
    """
    verdicts: list[bool | None] = []
    for pattern in patterns:
        for part in parts:
            if isinstance(part, Redirect):
                verdicts.append(_denies_redirect(pattern, part))
            elif isinstance(pattern, CommandPattern):
                verdicts.append(_denies_command(pattern, part.words))
    return any_denied(verdicts)


def any_denied(verdicts: Sequence[bool | None]) -> bool | None:
    """Return True if one verdict is True, else None if one is unknown, else False."""
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _denies_redirect(pattern: CommandPattern | RedirectPattern, part: Redirect) -> bool | None:
    if not isinstance(pattern, RedirectPattern) or pattern.writes != part.writes:
        return False
    if part.target.kind != "plain":
        return None
    denied = denies_path(pattern.glob, part.target.text)
    return None if part.folder_unknown and not denied else denied


def _denies_command(pattern: CommandPattern, words: tuple[Word, ...]) -> bool | None:
    if not words:
        return False
    named = _denies_program(pattern.words[0].text, words[0])
    rest = pattern.words[1:]
    if not named:
        return named
    size = len(rest) + 1
    indexes = operand_indexes(words) or [1]
    return any_denied(
        [_denies_words(rest, words[at : at + size], more=pattern.more) for at in indexes]
    )


def _denies_program(name: str, word: Word) -> bool | None:
    text = word.text.replace("\\", "/").rpartition("/")[2].casefold()
    wanted = name.rpartition("/")[2].casefold()
    if wanted in {text, program_name(text)}:
        return True
    if word.kind == "glob":
        return None if fnmatchcase(wanted, text) else False
    return False if word.kind == "plain" else None


def _denies_words(pattern: Sequence[Word], words: Sequence[Word], *, more: bool) -> bool | None:
    """Compare the words from one index on; `words` has at most one word more than the pattern."""
    if any(
        word.kind == "plain" and expected.text != word.text
        for expected, word in zip(pattern, words, strict=False)
    ):
        return False
    if any(word.kind != "plain" for word in (words[: len(pattern)] if more else words)):
        return None
    return len(words) == len(pattern) or (more and len(words) > len(pattern))


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
    try:
        rule = parse_allow_rule(text, {tool: (CommandTarget(""),)})
    except RuleError:
        return ""
    return text if allows_part(rule, part) else ""


def _source(word: Word) -> str:
    is_verbatim = word.kind == "glob" or word.source == word.text
    return word.source if is_verbatim else shlex.quote(word.text)
