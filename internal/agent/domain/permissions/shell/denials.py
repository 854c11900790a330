"""Match everything that a shell command may start against deny patterns.

A denied program matches by its name in any folder, also where a wrapper, a shell or an option
starts it. Unreadable parts make the verdict unknown. Each word and each embedded text is read a
bounded number of times; beyond the limits below the verdict is unknown as well.
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple

from internal.agent.domain.permissions.paths import denies_path
from internal.agent.domain.permissions.rules import CommandPattern, RedirectPattern
from internal.agent.domain.permissions.shell.code_sources import (
    is_readable,
    read_input_command,
    reads_a_script,
)
from internal.agent.domain.permissions.shell.parser import (
    MAX_BYTES,
    ParsedCommand,
    ReadLimit,
    Redirect,
    Script,
    parse_script,
)
from internal.agent.domain.permissions.shell.program_table import (
    KNOWN_PROGRAMS,
    SHELLS,
    TEXT_RUNNERS,
    UNSAFE_WORDS,
    WRAPPERS,
    split_names,
)
from internal.agent.domain.permissions.shell.programs import (
    find_unsafe_words,
    is_runner,
    operand_indexes,
    program_name,
)
from internal.agent.domain.permissions.shell.words import Word

MAX_EMBEDDED_TEXTS = 200
"""Texts inside words that are parsed as commands, for one command."""

MAX_EMBEDDED_BYTES = 2 * MAX_BYTES
"""The bytes of all these texts together."""

MAX_EMBEDDED_DEPTH = 4
"""Texts within texts, such as `sh -c "sh -c '...'"`."""

MAX_COMPARISONS = 20_000
"""Comparisons of a pattern with a place where a command may start, for one command."""

_MAY_HOLD_COMMANDS = re.compile(r"[^\w./@%+-]")
_SIGNS = re.compile(r"^-\w|[=!:,]|(?<![A-Za-z-])e[ \t]")
_BORDERS = re.compile(rf"{_SIGNS.pattern}|['\"]")
_QUOTES = re.compile(r"\\\n|[\\'\"]")
_EXPANDED = re.compile(r"[$`{(*?\[~<>]|\w=|(?:^|[\s;&|(!])\.[ \t]")
_CODE_READERS = SHELLS | split_names("source xargs parallel at batch crontab ssh su chroot script")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[.*\])?\+?=.*", re.DOTALL)
_NAMES_PROGRAMS = re.compile(
    r"(?:GIT|LD|DYLD|BASH|LESS|MAKE|NODE|PERL|PYTHON|RUBY|NPM|CARGO|RUST)_?.*|.*PATH|.*EDITOR|.*PAGER"
    r"|.*BROWSER|.*SHELL|.*OPTIONS|.*OPTS?|.*COMMAND|ENV|VISUAL|PS[0-4]|IFS|SHELLOPTS|CC|CXX|.*FLAGS"
    r"|.*ASKPASS|.*WRAPPER|.*_RSH|.*_SSH|HOME|XDG_.*"
)
_VALUE = re.compile(r"[-\d]")  # an option or a duration
_JOINERS = TEXT_RUNNERS - SHELLS
_BUILTIN_PREFIXES = split_names("command builtin eval time coproc")
_MAX_INPUTS = 10
_MAX_GLOBS = 20


ShellPattern = CommandPattern | RedirectPattern


class _Start(NamedTuple):
    """A place where a program may be started: the word at an index.

    `verb` is the subcommand in the name of the program, as in `git-push`. `certain`: the words
    before it are known to start the program.
    """

    words: tuple[Word, ...]
    at: int
    verb: Word | None
    certain: bool


class Reach:
    """The programs and files that a command may use, for matching against denials."""

    def __init__(self, script: Script, patterns: Sequence[ShellPattern]) -> None:
        self.redirects: list[Redirect] = []
        self.is_unread = bool(script.problem)
        """Some code that the command may run was not read."""
        self.is_unknown = False
        """A program that cannot be determined may be started."""
        self.comparisons = 0
        self._names = {_name(p) for p in patterns if isinstance(p, CommandPattern)}
        self._prefixes = {name[:end] for name in self._names for end in range(len(name) + 1)}
        self._starts: dict[str, list[_Start]] = {}
        self._globs: list[str] = []
        self._readers = (*self._names, *_CODE_READERS)
        self._scripts: dict[str, Script] = {}
        self._read_limit = ReadLimit()
        self._seen: set[tuple[str, bool, bool]] = set()
        self._inputs = 0
        self._embedded_bytes = 0
        self._add(script, MAX_EMBEDDED_DEPTH, certain=True)

    def starts_of(self, name: str) -> Sequence[_Start]:
        """Return where a program may be started."""
        return self._starts.get(name, ())

    def may_be_globbed(self, name: str) -> bool:
        """Return True if a file pattern in the place of a program matches the name."""
        return any(fnmatchcase(name, glob) for glob in self._globs)

    def _add(self, script: Script, depth: int, *, certain: bool) -> None:
        for part in script.parts:
            if isinstance(part, ParsedCommand):
                self._add_command(part, depth, certain=certain)
            elif certain:
                self.redirects.append(part)

    def _add_command(self, command: ParsedCommand, depth: int, *, certain: bool) -> None:
        words = command.words
        for word in command.assignments:
            self._add_assignment(word, depth, applies=bool(words))
        if not words:
            return
        name = program_name(words[0].text)
        self._add_start(words, 0, name, certain=certain)
        if name in UNSAFE_WORDS and any(word.kind == "unknown" for word in words[1:]):
            self.is_unknown = True  # the value may be an option that runs a program
        if is_runner(name) or command.no_rule or find_unsafe_words(words):
            self._add_operands(words, depth, certain=certain)
        elif name not in KNOWN_PROGRAMS:
            self._add_operands(words, depth, certain=False)

    def _add_assignment(self, word: Word, depth: int, *, applies: bool) -> None:
        """Add an assignment: one before a command (`applies`) changes the program that it runs."""
        if not self._names:
            return
        name, _, value = word.text.partition("=")
        if applies or _NAMES_PROGRAMS.fullmatch(name.partition("[")[0].rstrip("+")):
            self.is_unknown = True
        self._add_text(value, depth, certain=False, is_shell=False)
        self._add_start((Word(value, "plain", value),), 0, program_name(value), certain=False)

    def _add_operands(self, words: tuple[Word, ...], depth: int, *, certain: bool) -> None:
        names = [program_name(word.text) for word in words]
        is_shell = not TEXT_RUNNERS.isdisjoint(names)
        in_prefix = True
        for at, (word, name) in enumerate(zip(words, names, strict=True)):
            self._check_code_source(words, at, name, certain=certain)
            if at:
                self._add_start(words, at, name, certain=certain)
                self._add_text(word.text, depth, certain=certain, is_shell=is_shell)
            is_assignment = bool(_ASSIGNMENT.fullmatch(word.text))
            if in_prefix and at and certain and is_assignment:
                self.is_unknown = True
            after_option = at > 0 and words[at - 1].text.startswith("-")
            in_prefix = in_prefix and (
                name in WRAPPERS or after_option or is_assignment or bool(_VALUE.match(word.text))
            )
        if certain and _sources_unread_file(words, names):
            self.is_unread = True
        self._add_joined(words, names, depth, certain=certain)

    def _check_code_source(
        self, words: tuple[Word, ...], at: int, name: str, *, certain: bool
    ) -> None:
        is_script = name != "source" or reads_a_script(words, at)
        if not is_script or not is_readable(words, at, name):
            self.is_unread = True
        if name == "xargs":
            self._inputs += 1
            inner = read_input_command(words, at) if self._inputs <= _MAX_INPUTS else None
            if inner is None:
                self.is_unknown = True
            elif inner:
                self._add_start(inner, 0, program_name(inner[0].text), certain=certain)
        if _exports(words, at, name):
            self.is_unknown = True

    def _add_joined(
        self, words: tuple[Word, ...], names: Sequence[str], depth: int, *, certain: bool
    ) -> None:
        """Add the words after a program such as eval, which joins them to one text."""
        first = next((at for at, name in enumerate(names) if name in _JOINERS), None)
        if first is not None and len(words) > first + len(("eval", "text")):
            joined = " ".join(word.text for word in words[first + 1 :])
            self._add_text(joined, depth, certain=certain, is_shell=True)

    def _add_start(self, words: tuple[Word, ...], at: int, name: str, *, certain: bool) -> None:
        word = words[at]
        text = word.text.replace("\\", "/").rpartition("/")[2].casefold()
        found = {text, name} & self._names
        for each in found:
            self._starts.setdefault(each, []).append(_Start(words, at, None, certain))
        head, dash, verb = text.partition("-")
        if head == "git" and dash and head in self._names:
            start = _Start(words, at, Word(verb, "plain", verb), certain)
            self._starts.setdefault(head, []).append(start)
        if not certain or found or word.kind == "plain":
            return
        if word.kind == "glob":
            if re.split(r"[*?\[]", text, maxsplit=1)[0] in self._prefixes:
                self._globs.append(text)
                self.is_unknown = self.is_unknown or len(self._globs) > _MAX_GLOBS
        else:
            self.is_unknown = True

    def _add_text(self, text: str, depth: int, *, certain: bool, is_shell: bool) -> None:
        if not _MAY_HOLD_COMMANDS.search(text) or not self._is_relevant(text, certain=certain):
            return
        self._parse(text, depth, certain=certain, is_shell=is_shell)
        values = (text.partition("=")[2], text.partition("!")[2])
        fragments = dict.fromkeys((*values, *_SIGNS.split(text), *_BORDERS.split(text)))
        for fragment in filter(str.strip, fragments):
            if fragment != text and self._is_relevant(fragment, certain=certain):
                self._parse(fragment, depth, certain=certain, is_shell=False)

    def _is_relevant(self, text: str, *, certain: bool) -> bool:
        """Return False if no command in the text can start a denied program or read code."""
        folded = text.casefold()
        spellings = (folded, _QUOTES.sub("", folded)) if _QUOTES.search(folded) else (folded,)
        names = self._readers if certain else self._names
        if any(name in spelling for spelling in spellings for name in names):
            return True
        return certain and bool(_EXPANDED.search(text))

    def _names_denied(self, text: str) -> bool:
        plain = _QUOTES.sub("", text.casefold())
        found = (*re.findall(r"[\w.+-]+", plain), *re.findall(r"[\w.+]+", plain))
        return not self._names.isdisjoint(found)

    def _parse(self, text: str, depth: int, *, certain: bool, is_shell: bool) -> None:
        key = (text, certain, is_shell)
        if key in self._seen:
            return
        self._seen.add(key)
        script = self._read(text) if depth else None
        if script is None:
            self.is_unread = True
            return
        if script.problem and (is_shell or self._names_denied(text)):
            self.is_unread = True
        self._add(script, depth - 1, certain=certain)

    def _read(self, text: str) -> Script | None:
        """Return the parts of an embedded text, None beyond the limits."""
        if text not in self._scripts:
            self._embedded_bytes += len(text)
            too_many = len(self._scripts) >= MAX_EMBEDDED_TEXTS
            if too_many or self._embedded_bytes > MAX_EMBEDDED_BYTES:
                return None
            self._scripts[text] = parse_script(text, self._read_limit)
        return self._scripts[text]


def _name(pattern: CommandPattern) -> str:
    return pattern.words[0].text.rpartition("/")[2].casefold()


def _exports(words: Sequence[Word], at: int, name: str) -> bool:
    """Return True if a builtin of the shell gives variables to the programs that follow."""
    options = " ".join(word.text for word in words[at + 1 : at + 3])
    match name:
        case "export":
            return True
        case "declare" | "typeset" | "local":
            return bool(re.match(r"-\w*x", options))
        case "set":
            return bool(re.search(r"-\w*[ak]|allexport|keyword", options))
        case _:
            return False


def _sources_unread_file(words: Sequence[Word], names: Sequence[str]) -> bool:
    """Return True if the command is `source`, and not of a regular file."""
    runs = (at for at, each in enumerate(names) if not _is_prefix(each))
    first = next(runs, 0)
    return names[first] in {"source", "."} and not reads_a_script(words, first)


def _is_prefix(name: str) -> bool:
    return name in _BUILTIN_PREFIXES or name.startswith("-")


def denies(patterns: Sequence[ShellPattern], reach: Reach) -> bool | None:
    """Return True if a deny pattern matches a part that a command may start, None if unknown.

    A program matches by name in any folder, and the words after it past general options.
    """
    verdict = any_denied([each for pattern in patterns for each in _verdicts(pattern, reach)])
    return None if reach.is_unread and verdict is False else verdict


def any_denied(verdicts: Sequence[bool | None]) -> bool | None:
    """Return True if one verdict is True, else None if one is unknown, else False."""
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _verdicts(pattern: ShellPattern, reach: Reach) -> Iterator[bool | None]:
    if isinstance(pattern, RedirectPattern):
        remaining = max(MAX_COMPARISONS - reach.comparisons, 0)
        reach.comparisons += len(reach.redirects)
        yield from (_denies_redirect(pattern, part) for part in reach.redirects[:remaining])
        if len(reach.redirects) > remaining:
            yield None
        return
    if reach.is_unknown or reach.may_be_globbed(_name(pattern)):
        yield None
    for start in reach.starts_of(_name(pattern)):
        if reach.comparisons > MAX_COMPARISONS:
            yield None
            return
        yield _denies_start(pattern, start, reach)


def _denies_start(pattern: CommandPattern, start: _Start, reach: Reach) -> bool | None:
    rest = pattern.words[1:]
    size = len(rest) + 1
    words, at = start.words, start.at
    if start.verb:
        candidates = [(start.verb, *words[at + 1 : at + size])]
    else:
        remaining = max(MAX_COMPARISONS - reach.comparisons, 0) + 1
        indexes = islice(operand_indexes(words, at), remaining)
        candidates = [words[index : index + size] for index in indexes] or [()]
    reach.comparisons += len(candidates)
    verdict = any_denied([_denies_words(rest, each, more=pattern.more) for each in candidates])
    return verdict if start.certain or not verdict else None


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


def _denies_redirect(pattern: RedirectPattern, part: Redirect) -> bool | None:
    if pattern.writes != part.writes:
        return False
    if part.target.kind != "plain":
        return None
    denied = denies_path(pattern.glob, part.target.text)
    return None if part.folder_unknown and not denied else denied
