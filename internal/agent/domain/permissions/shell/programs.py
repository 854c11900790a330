"""Programs: names, wrappers, and the words of a command that no wildcard may cover."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache

from internal.agent.domain.permissions.shell.program_table import (
    INTERPRETERS,
    SAFE_SED,
    UNSAFE_LONG_OPTIONS,
    UNSAFE_WORDS,
    WRAPPERS,
    UnsafeWords,
)
from internal.agent.domain.permissions.shell.words import Word

_VERSION = re.compile(r"(?<=[a-z+])[-.\d]+(?:x86[-_]64|aarch64)?(?:\.so(?:\.\d+)?)?$|\.exe$")
# the target of a cross compiler, as in arm-linux-gcc
_TARGET = re.compile(r"^(?:[\w.]+-){2,}(?=(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)$)")
_NO_UNSAFE_WORDS = UnsafeWords()
_MODULE_WORDS = 2  # `python -m pytest …` is checked as `pytest …`
_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")


def program_name(text: str) -> str:
    """Return the program that a word runs: without folder and version, in lower case."""
    name = text.replace("\\", "/").rpartition("/")[2].casefold()
    return name if is_runner(name) else _VERSION.sub("", name)


def is_runner(name: str) -> bool:
    """Return True if the program runs the commands or code in its arguments."""
    return name in INTERPRETERS or name in WRAPPERS


def changes_directory(words: tuple[Word, ...]) -> bool:
    """Return True if the command changes the folder in which later parts run."""
    heads = (*words[:1], *unwrap(words)[:1])
    return any(word.text in {"cd", "pushd", "popd"} for word in heads)


def find_unsafe_words(words: Sequence[Word]) -> list[int]:
    """Return the indexes of the words that no wildcard covers."""
    name = program_name(words[0].text)
    skipped = 0
    if name in INTERPRETERS and len(words) > _MODULE_WORDS and words[1].text == "-m":
        skipped, words, name = _MODULE_WORDS, words[_MODULE_WORDS:], words[_MODULE_WORDS].text
    unsafe = UNSAFE_WORDS.get(_TARGET.sub("", name), _NO_UNSAFE_WORDS)
    found = [
        index
        for index, word in enumerate(words[1:], start=1)
        if _is_unsafe_option(word.text, unsafe)
        or re.fullmatch(unsafe.pattern, word.text, re.DOTALL)
    ]
    found.extend(p for p in operand_indexes(words) if re.fullmatch(unsafe.verbs, words[p].text))
    if name == "sed":
        found.extend(_unsafe_sed_scripts(words))
    if name in {"uniq", "xxd"}:  # they write to their second operand
        operands = [p for p, word in enumerate(words[1:], 1) if not word.text.startswith("-")]
        found.extend(operands[1:])
    return sorted(skipped + index for index in found)


def _is_unsafe_option(text: str, unsafe: UnsafeWords) -> bool:
    if not text.startswith("-"):
        return False
    if text.startswith("--"):
        given = text[2:].partition("=")[0]
        names = _long_options(unsafe)
        at = bisect_left(names, given)
        return bool(given) and at < len(names) and names[at].startswith(given)
    return any(letter in unsafe.short for letter in text[1:])


@cache
def _long_options(unsafe: UnsafeWords) -> list[str]:
    return sorted(unsafe.long | UNSAFE_LONG_OPTIONS)


def _unsafe_sed_scripts(words: Sequence[Word]) -> list[int]:
    """Return the index of a sed script that does more than print, delete or substitute."""
    indexes = [p for p, word in enumerate(words[1:], 1) if not word.text.startswith("-")][:1]
    return [
        index
        for index in indexes
        if words[index].kind != "plain" or not SAFE_SED.fullmatch(words[index].text)
    ]


def unwrap(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the command inside wrappers such as `time`, or `words` itself.

    Only the plainest forms are unwrapped: `command X`, `env X`, `nice [-n N] X`, `nohup X`,
    `time X`, `timeout DURATION X`.
    """
    at = 0
    while skipped := _wrapper_length(words[at : at + 4]):
        at += skipped
    return words[at:] if at else words


def _wrapper_length(words: tuple[Word, ...]) -> int:
    texts = [word.text if word.kind == "plain" else "-" for word in words]
    match texts:
        case ["nice", "-n", level, _] if re.fullmatch(r"\d+", level):
            return 3
        case ["timeout", duration, inner, *_] if _DURATION.fullmatch(duration):
            return 2 if _is_program(inner) else 0
        case ["command" | "env" | "nice" | "nohup" | "time", inner, *_]:
            return 1 if _is_program(inner) else 0
        case _:
            return 0


def _is_program(text: str) -> bool:
    return not text.startswith("-") and "=" not in text


def operand_indexes(words: Sequence[Word], at: int = 0) -> Iterator[int]:
    """Yield the indexes where the first operand may be: an option may or may not take a value.

    `at` is the index of the program. For `git -C folder push` the indexes are 1, 2 and 3.
    """
    for index in range(at + 1, len(words)):
        yield index
        is_option = words[index].text.startswith("-")
        if not is_option and not (index > at + 1 and words[index - 1].text.startswith("-")):
            return
