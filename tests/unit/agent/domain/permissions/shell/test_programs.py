"""Programs: names, wrappers, and words that no wildcard covers."""

import pytest

from internal.agent.domain.permissions.shell.programs import (
    changes_directory,
    find_unsafe_words,
    is_runner,
    operand_indexes,
    program_name,
    unwrap,
)
from internal.agent.domain.permissions.shell.words import Word


def words(text: str) -> tuple[Word, ...]:
    return tuple(Word(each, "plain", each) for each in text.split())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("/usr/bin/python3.12", "python"),
        ("Git", "git"),
        ("C:\\bin\\node.exe", "node"),
        ("ld-linux-x86-64.so.2", "ld-linux"),
        ("make", "make"),
    ],
)
def test_a_program_is_named_without_folder_and_version(text: str, name: str) -> None:
    assert program_name(text) == name


def test_shells_interpreters_and_wrappers_are_runners() -> None:
    assert all(map(is_runner, ("bash", "python", "sudo", "xargs")))
    assert not any(map(is_runner, ("git", "ls", "make")))


@pytest.mark.parametrize(
    ("command", "indexes"),
    [
        ("git log -n 5", []),
        ("git -c a=b log", [1]),
        ("tar -xzf a.tgz --to-command=rm", [3]),
        ("find . -name x -delete", [4]),
        ("sed s/a/b/ x", []),
        ("sed s/a/b/w x", [1]),
        ("uniq a b", [2]),
        ("python -m pytest tests", []),
    ],
)
def test_words_that_run_code_or_write_files_are_unsafe(command: str, indexes: list[int]) -> None:
    assert find_unsafe_words(words(command)) == indexes


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("timeout 5 nice -n 3 make", "make"),
        ("env git status", "git status"),
        ("env A=1 git", "env A=1 git"),
        ("timeout --foreground 5 make", "timeout --foreground 5 make"),
        ("sudo make", "sudo make"),
    ],
)
def test_only_plain_wrappers_are_unwrapped(command: str, inner: str) -> None:
    assert unwrap(words(command)) == words(inner)


def test_operands_may_follow_options_with_and_without_values() -> None:
    assert list(operand_indexes(words("git -C folder push"))) == [1, 2, 3]
    assert list(operand_indexes(words("git push origin"))) == [1]
    assert list(operand_indexes(words("git"))) == []


def test_a_wrapped_change_of_directory_is_recognized() -> None:
    assert changes_directory(words("cd x"))
    assert changes_directory(words("command cd x"))
    assert not changes_directory(words("echo cd"))
