"""The command line: what may be written on it, and the help. Standard library only."""

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.channels.cli.task_request import decode_argument
from larkspur.lookup_arguments import COMPLETION, LOOKUPS
from larkspur.people_arguments import PEOPLE

ONE_SHOT = "one-shot"
_MODES = ("ask", "plan", "accept-edits", "deny", "full")
_REVIEWS = ("off", "complex", "always")
_LONGEST_TITLE = 200
_USAGE = """larkspur [PROMPT] [options]         a session in the terminal
       larkspur -p [PROMPT] [options]      one task, its answer on standard output
       larkspur serve [--host HOST] [--port PORT] [--lark-sim] [--config FILE]
       larkspur lark-sim [--port PORT]
       larkspur doctor [--json] [--config FILE]
       larkspur models [--json] [--config FILE]
       larkspur config show|path [--config FILE]
       larkspur events schema [--markdown]
       larkspur sessions list|show|export|rm|rename … · tasks · cost [--by day|session|model]
       larkspur watch ID · say ID TEXT · stop ID · resume TASK
       larkspur questions [--all] · answer QUESTION DECISION
       larkspur pair [--role talk|operate|owner] | list | remove ID · rules · audit
       larkspur completion bash|zsh|fish
       larkspur --version | --help"""
_EPILOG = """\
Standard output carries only the answer (or JSON); all else goes to standard error.
A running gateway of the same data folder does the work; without one this process does.

exit codes:
  0 ok · 1 run failed · 2 usage · 3 config or auth · 4 a needed action was denied · 5 a limit was
  hit · 6 waiting for a person · 130 Ctrl+C · 143 SIGTERM · 129 SIGHUP · 141 nobody reads the output

`larkspur COMMAND --help` explains a command."""


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are one sentence."""

    def __init__(self, **keywords: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(allow_abbrev=False, formatter_class=formatter, **keywords)

    def error(self, message: str) -> NoReturn:
        """End with the complaint.

        Raises:
            Leave: always.
        """
        raise CliExit(USAGE, f"{decode_argument(message)}. See {self.prog} --help")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line. `command` of the result is `one-shot` or the name of a command.

    Raises:
        Leave: it cannot be understood.
        SystemExit: help was asked for and printed.
    """
    command = _COMMANDS.get(argv[0]) if argv else None
    if command is None:
        return _one_shot().parse_args(argv, argparse.Namespace(command=ONE_SHOT))
    parser = _Parser(prog=f"larkspur {argv[0]}", description=command.__doc__)
    command(parser)
    return parser.parse_args(argv[1:], argparse.Namespace(command=argv[0]))


def usage() -> str:
    """Return the whole help."""
    return _one_shot().format_help()


def _one_shot() -> _Parser:
    parser = _Parser(prog="larkspur", usage=_USAGE, epilog=_EPILOG, description="One agent.")
    parser.description = "Larkspur: one agent behind a terminal, a web page and Lark."
    add = parser.add_argument
    add("prompt", nargs="?", type=decode_argument, help=argparse.SUPPRESS)
    add("--version", action="store_true", help="print the version")
    add(
        *("-p", "--print"),
        dest="shot",
        nargs="?",
        const="",
        type=decode_argument,
        metavar="PROMPT",
        help="do one task and print its answer; what is piped in is appended to the prompt",
    )
    formats = ("text", "json", "stream-json")
    add("--output-format", choices=formats, default="text", help="what is printed (text)")
    add("--detach", action="store_true", help="hand the task to the gateway and print its id")
    add("--ascii", action="store_true", help="plain signs in the session")
    _add_conversation(parser.add_argument_group("conversation"))
    _add_work(parser.add_argument_group("how the work is done"))
    _add_place(parser.add_argument_group("where the work is done"))
    return parser


def _add_conversation(group: argparse._ArgumentGroup) -> None:
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        *("-c", "--continue"), dest="last", action="store_true", help="go on with the last session"
    )
    which.add_argument(
        *("-r", "--resume"),
        nargs="?",
        const="",
        type=decode_argument,
        metavar="ID",
        help="go on with this session; without ID the newest are listed",
    )
    group.add_argument("--session-name", type=_title, metavar="NAME", help="name the session")
    group.add_argument(
        *("-f", "--file"),
        dest="files",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="files that go with the task",
    )


def _add_work(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--model", type=_said, help="the model")
    add("--profile", type=_said, help="who the agent is")
    add("--permission-mode", choices=_MODES, help="what happens to actions that no rule decides")
    add("--plan-review", choices=_REVIEWS, help="which plans wait until a person agrees")
    many: dict[str, Any] = {"action": "append", "default": [], "metavar": "RULE", "type": _said}
    add("--allow", help="a rule that lets actions run unasked; may be repeated", **many)
    add("--deny", help="a rule that refuses actions and always wins; may be repeated", **many)
    add("--max-iterations", type=_above_zero(int), metavar="N", help="most iterations")
    add("--max-cost", type=_above_zero(float), metavar="USD", help="most that it may cost")
    add(
        "--timeout",
        dest="timeout_seconds",
        type=_above_zero(float),
        metavar="S",
        help="longest running time in seconds",
    )


def _add_place(group: argparse._ArgumentGroup) -> None:
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--server", type=decode_argument, metavar="URL", help="the gateway at this address"
    )
    which.add_argument("--local", action="store_true", help="this process, whatever else runs")
    _add_config(group)


def _add_config(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--config", metavar="FILE", help="the configuration file")


def _serve(parser: argparse.ArgumentParser) -> None:
    """Run the gateway."""
    parser.add_argument("--host", type=decode_argument, help="address to listen on")
    parser.add_argument("--port", type=int, help="port to listen on; 0 takes any free one")
    parser.add_argument(
        "--lark-sim", action="store_true", help="beside a local Lark, when no app is set"
    )
    _add_config(parser)


def _lark_sim(parser: argparse.ArgumentParser) -> None:
    """Run a simulator of Lark on this machine, with a chat page."""
    parser.add_argument("--port", type=int, default=8430, help="port to listen on; 0 any free one")
    parser.add_argument("--app-id", type=decode_argument, help="the app's id")
    parser.add_argument(
        "--app-secret", type=decode_argument, help="the app's secret; made up when unset"
    )


def _doctor(parser: argparse.ArgumentParser) -> None:
    """Check whether everything that Larkspur needs is there. Changes nothing."""
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    _add_config(parser)


def _models(parser: argparse.ArgumentParser) -> None:
    """List the known models: what they take, what they cost, whose key is there."""
    parser.add_argument("--json", action="store_true", help="print the models as JSON")
    _add_config(parser)


def _config(parser: argparse.ArgumentParser) -> None:
    """Show the settings, and where each came from. Secrets are not shown."""
    parser.add_argument("what", choices=("show", "path"), help="all settings, or the file's place")
    _add_config(parser)


def _events(parser: argparse.ArgumentParser) -> None:
    """Print the JSON Schema of everything that an event stream can carry."""
    parser.add_argument("what", choices=("schema",), help="the schema")
    parser.add_argument("--markdown", action="store_true", help="as a page for people")


def _placed(
    command: Callable[[argparse.ArgumentParser], None], parser: argparse.ArgumentParser
) -> None:
    parser.description = command.__doc__
    command(parser)
    _add_place(parser.add_argument_group("where to look"))


def words() -> tuple[list[str], list[str]]:
    """Return the names of all commands and all options, for the completion of shells."""
    options = [name for action in _one_shot()._actions for name in action.option_strings]  # noqa: SLF001 - argparse lists them nowhere else
    return list(_COMMANDS), options


_COMMANDS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "serve": _serve,
    "lark-sim": _lark_sim,
    "doctor": _doctor,
    "models": _models,
    "config": _config,
    "events": _events,
    **{name: partial(_placed, command) for name, command in {**LOOKUPS, **PEOPLE}.items()},
    **COMPLETION,
}


def _said(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be blank")
    return decode_argument(text)


def _title(text: str) -> str:
    shown = (char if char.isprintable() else " " for char in decode_argument(text))
    title = " ".join("".join(shown).split())
    if not 0 < len(title) <= _LONGEST_TITLE:
        raise argparse.ArgumentTypeError(f"must have 1 to {_LONGEST_TITLE} characters")
    return title


def _above_zero(kind: type[int] | type[float]) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(0)
        if not (value > 0 and math.isfinite(value)):
            raise argparse.ArgumentTypeError(
                f"must be a number above 0, not {decode_argument(text)}"
            )
        return value

    return number
