"""The list of commands: dispatch, help and completion come from one registration."""

import sys
from argparse import Namespace
from types import ModuleType

import pytest

from internal.channels.cli.application import Application
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.registry import COMMANDS, Subcommand, dispatch, registered
from internal.channels.cli.exit_codes import CliExit


def no_application() -> Application:
    raise AssertionError("no command of these tests works in this process")


CONTEXT = CommandContext(no_application, "1.2.3")


def test_every_command_registers_its_name_a_description_and_a_function() -> None:
    parsers = dict(registered())
    assert list(parsers) == [command.name for command in COMMANDS]
    for name, parser in parsers.items():
        assert parser.prog == f"larkspur {name}"
        assert parser.description
        assert callable(parser.get_default("run"))


def test_help_names_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        dispatch(["--help"], CONTEXT)
    shown = capsys.readouterr().out
    for command in COMMANDS:
        assert f"  {command.name} " in shown
        assert command.summary in shown
    for word in ("130", "143", "141", "stream-json"):
        assert word in shown


def test_completion_of_every_shell_names_every_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert dispatch(["completion", shell], CONTEXT) == 0
        shown = capsys.readouterr().out
        assert {command.name for command in COMMANDS} <= {*shown.replace('"', " ").split()}


def test_new_command_is_one_module_and_one_entry(capsys: pytest.CaptureFixture[str]) -> None:
    module = ModuleType("internal.channels.cli.commands.echo")

    def register(subparsers: Subparsers) -> None:
        parser = subparsers.add_parser("echo", description="Print the words.")
        parser.add_argument("words", nargs="+")
        parser.set_defaults(run=run)

    def run(args: Namespace, context: CommandContext) -> int:
        sys.stdout.write(f"{context.version} {' '.join(args.words)}\n")
        return 7

    vars(module)["register"] = register
    commands = (*COMMANDS, Subcommand("echo", "echo", "print the words"))
    sys.modules[module.__name__] = module
    try:
        assert dispatch(["echo", "a", "b"], CONTEXT, commands) == 7
        assert capsys.readouterr().out == "1.2.3 a b\n"
        with pytest.raises(SystemExit):
            dispatch(["--help"], CONTEXT, commands)
        assert "echo          print the words" in capsys.readouterr().out
        with pytest.raises(CliExit, match="larkspur echo"):
            dispatch(["ecko"], CONTEXT, commands)
        assert dict(registered(commands))["echo"].description == "Print the words."
    finally:
        del sys.modules[module.__name__]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["serve", "--colour"], "--colour"),
        (["config", "set"], "set"),
        (["taks"], "Did you mean `larkspur tasks`"),
        (["Sesions"], "larkspur sessions"),
        (["docter", "--ascii"], "larkspur doctor"),
    ],
)
def test_invalid_command_line_is_a_usage_error(argv: list[str], message: str) -> None:
    with pytest.raises(CliExit, match=message) as exit_:
        dispatch(argv, CONTEXT)
    assert exit_.value.code == 2
    assert "\n" not in str(exit_.value)


@pytest.mark.parametrize("argv", [["summarise"], ["two words"], ["--", "taks"]])
def test_prompt_that_resembles_no_command_starts_a_session(argv: list[str]) -> None:
    with pytest.raises(CliExit, match="not a terminal"):
        dispatch(argv, CONTEXT)


def test_version_is_printed_among_other_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["--ascii", "--version"], CONTEXT) == 0
    assert capsys.readouterr().out == "larkspur 1.2.3\n"
