"""The options of `larkspur` and `larkspur -p`. Standard library only: `--help` imports this."""

import argparse
from typing import Any

from internal.agent.domain.permissions.modes import EARLIER_NAMES, Mode
from internal.channels.cli.commands.parser import (
    OUTPUT_FORMATS,
    CliParser,
    add_gateway,
    positive,
    text_argument,
)
from internal.channels.cli.task_request import decode_argument
from internal.channels.network_choice import (
    NETWORK_CHOICES,
    parse_network_choice,
)

_REVIEWS = ("off", "complex", "always")
_MAX_TITLE = 200
_USAGE = """larkspur [PROMPT] [options]       start a session in the terminal
       larkspur -p [PROMPT] [options]    run one task and print its answer
       larkspur COMMAND …"""
_DESCRIPTION = """\
Larkspur: one agent in a terminal, on a web page and in Lark.

commands:
{commands}

`larkspur COMMAND --help` explains a command."""
_EPILOG = """\
Standard output carries only the answer (or JSON); everything else goes to standard error.
A running gateway of the same data folder does the work; without one this process does.

exit codes:
  0 ok · 1 run failed · 2 usage · 3 config or auth · 4 a needed action was denied · 5 a limit was
  hit · 6 waiting for a person · 130 Ctrl+C · 143 SIGTERM · 129 SIGHUP · 141 broken pipe"""


def build_parser(commands: str) -> CliParser:
    """Return the parser; `commands` are the lines of its help that list the commands."""
    parser = CliParser(
        prog="larkspur",
        usage=_USAGE,
        description=_DESCRIPTION.format(commands=commands),
        epilog=_EPILOG,
    )
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
        help="run one task and print its answer; standard input is appended to the prompt",
    )
    add("--output-format", choices=OUTPUT_FORMATS, default="text", help="output format (text)")
    add(
        "--input-format",
        choices=("text", "stream-json"),
        default="text",
        help="stream-json: tasks, messages and answers on standard input, a JSON object per line",
    )
    add(
        "--json-schema",
        dest="schema",
        type=decode_argument,
        metavar="FILE",
        help="the answer must be JSON that matches the JSON schema in this file",
    )
    add("--detach", action="store_true", help="hand the task to the gateway and print its id")
    add("--ascii", action="store_true", help="use only ASCII symbols in the session")
    _add_conversation(parser.add_argument_group("conversation"))
    _add_task(parser.add_argument_group("task"))
    add_gateway(parser)
    return parser


def _add_conversation(group: argparse._ArgumentGroup) -> None:
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        *("-c", "--continue"), dest="last", action="store_true", help="continue the last session"
    )
    which.add_argument(
        *("-r", "--resume"),
        nargs="?",
        const="",
        type=decode_argument,
        metavar="ID",
        help="continue this session; without ID list the newest",
    )
    group.add_argument("--session-name", type=_title, metavar="NAME", help="name the session")
    group.add_argument(
        *("-f", "--file"),
        dest="files",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="attach files to the task",
    )


def _add_task(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--model", type=text_argument, help="model to use")
    add("--profile", type=text_argument, help="profile to use")
    add(
        "--permission-mode",
        type=lambda name: EARLIER_NAMES.get(name, name),
        choices=tuple(map(str, Mode)),
        help="what runs without a question, from the least to everything",
    )
    add("--plan-review", choices=_REVIEWS, help="which plans need a person's approval")
    add(
        "--network",
        type=_network,
        metavar="HOSTS",
        help=f"what isolated commands reach without asking: {NETWORK_CHOICES}",
    )
    many: dict[str, Any] = {"action": "append", "default": [], "metavar": "RULE"}
    add("--allow", help="allow actions by a rule (repeatable)", type=text_argument, **many)
    add(
        "--deny",
        help="deny actions by a rule; denials win (repeatable)",
        type=text_argument,
        **many,
    )
    add(
        "--here",
        action="store_true",
        help="work in the current folder even if it contains your home directory",
    )
    add("--max-iterations", type=positive(int), metavar="N", help="stop after N iterations")
    add(
        "--max-cost",
        type=positive(float),
        metavar="USD",
        help="stop when the cost exceeds this amount",
    )
    add(
        "--timeout",
        dest="timeout_seconds",
        type=positive(float),
        metavar="S",
        help="stop after S seconds of running time",
    )


def _network(text: str) -> str | tuple[str, ...]:
    try:
        return parse_network_choice(decode_argument(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _title(text: str) -> str:
    printable = (char if char.isprintable() else " " for char in decode_argument(text))
    title = " ".join("".join(printable).split())
    if not 0 < len(title) <= _MAX_TITLE:
        raise argparse.ArgumentTypeError(f"must have 1 to {_MAX_TITLE} characters")
    return title
