"""The parts of shell commands, and the problems that make them unusable."""

import gc

import pytest

from internal.agent.domain.permissions.shell.parser import (
    MAX_BARS,
    MAX_BYTES,
    MAX_DEPTH,
    ParsedCommand,
    Redirect,
    parse_script,
)


def commands(text: str) -> list[str]:
    return [
        " ".join(word.text for word in part.words)
        for part in parse_script(text).parts
        if isinstance(part, ParsedCommand)
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a x; b && c | d", ["a x", "b", "c", "d"]),
        ("if a; then b; else c; fi", ["a", "b", "c"]),
        ("(a; { b; })", ["a", "b"]),
        ("case x in y) a;; esac", ["a"]),
        ("while a; do b; done", ["a", "b"]),
        ("echo 'a; b'", ["echo a; b"]),
    ],
)
def test_every_command_of_a_script_is_a_part(text: str, parts: list[str]) -> None:
    assert commands(text) == parts
    assert parse_script(text).problem == ""


def test_a_substituted_command_is_a_part_of_its_own() -> None:
    assert "rm x" in commands('echo "$(rm x)" `ls`')
    assert "ls" in commands('echo "$(rm x)" `ls`')


def test_redirections_are_parts() -> None:
    redirects = [
        (part.writes, part.target.text)
        for part in parse_script("a > out < in 2>> log 2>&1").parts
        if isinstance(part, Redirect)
    ]
    assert sorted(redirects) == [(False, "in"), (True, "log"), (True, "out")]


@pytest.mark.parametrize(
    "text",
    [
        "[ a > out ]",
        "[ a < b ]",
        "a >&'out/$(b)'",
        "a >&out",
        "a 0>out",
        "a 0<in",
        "a 0<<<b",
        """a "${b:-'$(c)'}\"""",
    ],
)
def test_what_the_parser_reads_differently_than_the_shell_is_a_problem(text: str) -> None:
    assert parse_script(text).problem


@pytest.mark.parametrize("text", ["a >&2", "a >&-", "a 2>&1", "a 5 >out", "a2>out", '"${b:-c}"'])
def test_similar_texts_are_no_problem(text: str) -> None:
    assert parse_script(text).problem == ""


def test_a_relative_path_is_unknown_after_a_change_of_directory() -> None:
    script = parse_script("cd /etc; ./run; a > out; b > /srv/out")
    redirects = {
        part.target.text: part.folder_unknown for part in script.parts if isinstance(part, Redirect)
    }
    assert redirects == {"out": True, "/srv/out": False}
    program = next(p for p in script.parts if isinstance(p, ParsedCommand) and "run" in str(p))
    assert program.no_rule


@pytest.mark.parametrize(
    "text",
    [
        *("A=1", "((x))", "export A=1", "[[ $a -eq 1 ]]", "for X in a; do ls; done"),
        "x=1; echo $((x))",
    ],
)
def test_a_part_that_changes_the_shell_cannot_be_covered_by_a_rule(text: str) -> None:
    reasons = [p.no_rule for p in parse_script(text).parts if isinstance(p, ParsedCommand)]
    assert any(reasons)


@pytest.mark.parametrize(
    "text",
    [
        "ls 'x",
        "if true",
        "a <<E\n$(x)\n",
        "(" * (MAX_DEPTH + 2) + "a" + ")" * (MAX_DEPTH + 2),
        "a " * MAX_BYTES,
        "a|" * (MAX_BARS + 1) + "a",
        "case a=(" * 1_000,  # the parser scans the rest for each of them
        "a \u202eb",
        "a \x00b",
    ],
)
def test_a_doubtful_script_has_a_problem(text: str) -> None:
    assert parse_script(text).problem


def test_the_parts_of_a_long_script_are_freed_without_a_garbage_collection() -> None:
    gc.collect()
    gc.disable()
    try:
        assert len(parse_script("a b; " * 1_000).parts) == 1_000
        assert gc.collect() < 100
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "ls; for ((i=0; i<3; i++)); do ls; done",
            "the syntax c style for statement is not supported: for ((i=0; i<3; i++)); do ls; done",
        ),
        ("if true", "it is not valid shell syntax"),
    ],
)
def test_a_problem_names_the_part_that_has_it(text: str, problem: str) -> None:
    assert parse_script(text).problem == problem
