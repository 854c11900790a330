"""The argument parser and the types of its arguments."""

import argparse

import pytest

from internal.channels.cli.commands.parser import CliParser, add_gateway, positive, text_argument
from internal.channels.cli.commands.registry import build_parser
from internal.channels.cli.exit_codes import CliExit


def test_error_is_one_sentence_with_exit_code_2() -> None:
    with pytest.raises(CliExit, match="See larkspur --help") as exit_:
        CliParser(prog="larkspur").parse_args(["--unknown"])
    assert exit_.value.code == 2


def test_server_and_local_exclude_each_other() -> None:
    parser = CliParser(prog="larkspur")
    add_gateway(parser)
    assert parser.parse_args(["--local"]).local
    with pytest.raises(CliExit, match="not allowed with"):
        parser.parse_args(["--local", "--server", "http://127.0.0.1:1"])


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "many"])
def test_number_must_be_finite_and_above_0(text: str) -> None:
    assert positive(float)("0.5") == 0.5
    with pytest.raises(argparse.ArgumentTypeError, match="above 0"):
        positive(float)(text)


def test_text_must_not_be_blank() -> None:
    assert text_argument("a b") == "a b"
    with pytest.raises(argparse.ArgumentTypeError, match="empty"):
        text_argument("  ")


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("models --config X list", {"config": "X", "provider": ""}),
        ("models list --config X", {"config": "X"}),
        ("models --config Y list --config X", {"config": "X"}),
        ("models --json forget --config X m", {"json": True, "config": "X", "model": "m"}),
        ("mcp add --yes NAME", {"action": "add", "what": "NAME", "yes": True}),
        ("mcp --yes add NAME", {"action": "add", "what": "NAME", "yes": True}),
        ("skills review --yes NAME", {"action": "review", "what": ["NAME"], "yes": True}),
        ("pair remove --local ID", {"action": "remove", "id": "ID", "local": True}),
        ("say ID a --local b", {"id": "ID", "text": ["a", "b"], "local": True}),
        ("say ID a --local -- --b", {"id": "ID", "text": ["a", "--b"], "local": True}),
        ("tasks diff --json ID", {"action": "diff", "id": "ID", "json": True}),
        ("db backup --config X FILE", {"action": "backup", "file": "FILE", "config": "X"}),
    ],
)
def test_options_may_stand_before_and_after_words(line: str, values: dict[str, object]) -> None:
    parsed = vars(build_parser().parse_args(line.split()))
    assert {name: parsed[name] for name in values} == values


def test_a_word_too_many_is_named_wherever_options_stand() -> None:
    for line in ("mcp add --yes NAME other", "models --config X list openai other"):
        with pytest.raises(CliExit, match="unrecognized arguments: other"):
            build_parser().parse_args(line.split())
