"""The argument parser and the types of its arguments."""

import argparse

import pytest

from internal.channels.cli.commands.parser import CliParser, add_gateway, positive, text_argument
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
