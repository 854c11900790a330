"""The options of `larkspur` and `larkspur -p`."""

from argparse import Namespace

import pytest

from internal.channels.cli.commands.start_options import build_parser
from internal.channels.cli.exit_codes import CliExit


def parse(argv: list[str]) -> Namespace:
    return build_parser("").parse_args(argv)


def test_task_options_are_parsed() -> None:
    wanted = parse(
        ["-p", "-x is odd", "--allow", "a", "--allow", "b", "-f", "1", "2", "--max-cost", "0.5"]
    )
    assert wanted.shot == "-x is odd"
    assert (wanted.allow, wanted.files, wanted.max_cost) == (["a", "b"], ["1", "2"], 0.5)
    assert parse(["-p", "serve"]).shot == "serve"
    assert parse(["-r"]).resume == ""
    assert parse(["-r", "session-1", "-p", "go on"]).resume == "session-1"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["-p", "x", "--fork"], "--fork"),
        (["-p", "x", "--input-format", "xml"], "xml"),
        (["-p", "x", "--output", "json"], "--output"),
        (["-p", "x", "--output-format", "xml"], "xml"),
        (["-p", "x", "--max-cost", "nan"], "above 0"),
        (["-p", "x", "--timeout", "-3"], "above 0"),
        (["-p", "x", "--max-iterations", "1.5"], "above 0"),
        (["-p", "x", "--session-name", "\n"], "1 to 200"),
        (["-p", "x", "--model", " "], "not be empty"),
        (["-p", "x", "-c", "-r", "id"], "not allowed with"),
        (["-p", "x", "--local", "--server", "http://127.0.0.1"], "not allowed with"),
    ],
)
def test_invalid_argument_is_named_in_one_sentence(argv: list[str], message: str) -> None:
    with pytest.raises(CliExit, match=message) as exit_:
        parse(argv)
    assert exit_.value.code == 2
    assert "\n" not in str(exit_.value)
