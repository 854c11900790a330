"""Where shells and other programs that run commands read them from.

A command can be judged only if it is written in the words. Everything else that such a program may
read, such as its standard input, is unread code: a deny rule cannot be checked against it. The
readable forms are an allow-list, so an unknown option makes a command unreadable.
"""

import re
from collections.abc import Sequence
from itertools import islice

from internal.agent.domain.permissions.paths import normalize_path
from internal.agent.domain.permissions.shell.program_table import (
    INTERPRETERS,
    SHELLS,
    WRAPPERS,
    split_names,
)
from internal.agent.domain.permissions.shell.programs import operand_indexes, program_name
from internal.agent.domain.permissions.shell.words import Word

_READABLE_SHELLS = split_names("sh bash dash ash rbash")  # the others have another syntax
_INFO_OPTIONS = frozenset({"--version", "--help"})
_SHELL_OPTIONS = split_names("--login --norc --noprofile --noediting --verbose --restricted")
_SHELL_LETTERS = re.compile(r"[-+][cefhlnuvxCo]+")
_SHELL_OPTION_NAMES = split_names(
    "errexit nounset pipefail xtrace verbose noglob noclobber noexec ignoreeof errtrace functrace"
)
_NOT_FILES = re.compile(
    r"(?:\.\./|/)+(?:dev|proc|sys)(?:/.*)?|(?:.*/)?(?:stdin|fd/.*)", re.DOTALL | re.IGNORECASE
)
_SHELL_STARTERS = split_names(
    "su newgrp sg ssh autossh mosh chroot unshare nsenter script screen tmux dtach byobu zellij",
    "fakeroot firejail proot schroot xterm uxterm rxvt urxvt nix-shell at batch crontab parallel",
    "sem rush distrobox toolbox guix systemd-nspawn machinectl dbus-run-session run0 pkexec expect",
)
_LOGIN_OPTIONS = frozenset({"-s", "-i", "--shell", "--login"})
_XARGS_VALUES = frozenset({"-n", "-P", "-L", "-s", "-d", "-E", "-a", "-I", "-J", "-R", "-S"})
_XARGS_FLAGS = re.compile(
    r"-[0rtpxo]+|-[nPLsdEaIJRS].+|--(?:null|no-run-if-empty|verbose|interactive|exit|max-\w+=.*"
    r"|delimiter=.*|arg-file=.*|replace=.+|eof=.*)",
    re.DOTALL,
)
_MAX_OPTIONS = 20
_PLACEHOLDER = "{}"  # find, xargs and parallel put file names in its place
_INPUT = Word("", "unknown", "")


def is_readable(words: Sequence[Word], at: int, name: str) -> bool:
    """Return False if the program at an index may run commands that are not in the words."""
    if name in SHELLS:
        return _is_readable_shell(name, words[at + 1 : at + 1 + _MAX_OPTIONS])
    if name in {"sudo", "doas"}:
        options = list(islice(operand_indexes(words, at), _MAX_OPTIONS))
        given = {words[index].text for index in options}
        return len(options) < _MAX_OPTIONS and _LOGIN_OPTIONS.isdisjoint(given)
    if name in _SHELL_STARTERS:
        return _names_a_command(name, words[at + 1 : at + 1 + _MAX_OPTIONS])
    return True


def reads_a_script(words: Sequence[Word], at: int) -> bool:
    """Return True if `source` or `.` at an index runs a regular file."""
    return len(words) > at + 1 and _is_script(words[at + 1])


def _is_readable_shell(name: str, operands: Sequence[Word]) -> bool:
    if operands and operands[0].text in _INFO_OPTIONS:
        return True
    text_follows = False
    index = 0
    while index < len(operands) and operands[index].text[:1] in {"-", "+"}:
        text = operands[index].text
        if text == "--":
            index += 1
            break
        is_known = text in _SHELL_OPTIONS or _SHELL_LETTERS.fullmatch(text)
        if not is_known or operands[index].kind != "plain":
            return False
        if not text.startswith("--"):
            named = text.count("o")
            names = [word.text for word in operands[index + 1 : index + 1 + named]]
            if len(names) < named or not _SHELL_OPTION_NAMES.issuperset(names):
                return False
            text_follows = text_follows or "c" in text
            index += named
        index += 1
    if index >= len(operands):
        return False
    if text_follows:
        code = operands[index]
        is_readable_text = code.kind == "plain" and _PLACEHOLDER not in code.text
        return is_readable_text and name in _READABLE_SHELLS
    return _is_script(operands[index])


def _is_script(word: Word) -> bool:
    """Return True if the word is the path of a file, judging by its text."""
    return (
        word.kind == "plain"
        and word.text[:1] not in {"", "-", "+"}
        and _PLACEHOLDER not in word.text
        and not _NOT_FILES.fullmatch(normalize_path(word.text))
    )


def _names_a_command(name: str, operands: Sequence[Word]) -> bool:
    if any(word.kind == "unknown" for word in operands):
        return False
    texts = [word.text for word in operands]
    if name in {"parallel", "sem", "rush"}:
        return bool(texts) and not texts[0].startswith("-") and ":::" in texts[1:]
    if name in {"at", "batch", "crontab", "newgrp"}:
        return texts[:1] in (["-l"], ["-q"], ["--version"])
    if name in {"ssh", "autossh", "mosh", "chroot"}:  # the first operand is not a command
        return len(texts) > 1 and not texts[0].startswith("-")
    return bool(texts)


def read_input_command(words: Sequence[Word], at: int) -> tuple[Word, ...] | None:
    """Return the command that xargs at an index starts, with an unknown word for its input.

    None if the input may name the program; () if there is none but `echo`.
    """
    index = at + 1
    placeholder = ""
    while index < len(words) and words[index].text.startswith("-"):
        text = words[index].text
        takes_value = text in _XARGS_VALUES and index + 1 < len(words)
        is_plain = all(word.kind == "plain" for word in words[index : index + 1 + takes_value])
        if not is_plain or not (takes_value or _XARGS_FLAGS.fullmatch(text)):
            return None
        value = words[index + 1].text if takes_value else text[2:].removeprefix("replace=")
        if text.startswith(("-I", "-J", "--replace")):
            placeholder = value
        index += 2 if takes_value else 1
    if index >= len(words):
        return ()
    if program_name(words[index].text) in WRAPPERS:
        return None
    inner = tuple(words[index:])
    if placeholder:
        inner = tuple(_INPUT if placeholder in word.text else word for word in inner)
    else:
        inner = (*inner, _INPUT)
    return None if _input_names_a_program(inner) else inner


def _input_names_a_program(words: tuple[Word, ...]) -> bool:
    name = program_name(words[0].text)
    if words[0].kind != "plain":
        return True
    return name in INTERPRETERS and _INPUT in words and not _is_script(words[1])
