"""The argument parser, and options that several commands share. Standard library only."""

import argparse
import math
from collections.abc import Callable
from typing import Any, NoReturn

from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.channels.cli.task_request import decode_argument

TASK_ID_HELP = "a task, run or session id, or the beginning of one"
OUTPUT_FORMATS = ("text", "json", "stream-json")


class CliParser(argparse.ArgumentParser):
    """An argument parser that reports an error as one sentence."""

    def __init__(self, **keywords: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"allow_abbrev": False, "formatter_class": formatter, **keywords})

    def error(self, message: str) -> NoReturn:
        """Exit with the message.

        Raises:
            CliExit: always.
        """
        raise CliExit(USAGE, f"{decode_argument(message)}. See {self.prog} --help")


def add_json(parser: argparse._ActionsContainer) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_config(parser: argparse._ActionsContainer) -> None:
    """Add `--config`."""
    parser.add_argument("--config", metavar="FILE", help="configuration file")


def add_server(parser: argparse._ActionsContainer) -> None:
    """Add `--server`."""
    parser.add_argument(
        "--server", type=decode_argument, metavar="URL", help="use the gateway at this URL"
    )


def add_gateway(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose between a running gateway and this process."""
    group = parser.add_argument_group("gateway")
    which = group.add_mutually_exclusive_group()
    add_server(which)
    which.add_argument("--local", action="store_true", help="work in this process")
    add_config(group)


def add_output_format(parser: argparse._ActionsContainer) -> None:
    """Add `--output-format`."""
    parser.add_argument(
        "--output-format", choices=OUTPUT_FORMATS, default="text", help="output format (text)"
    )


def text_argument(text: str) -> str:
    """Return an argument that must not be empty."""
    text = decode_argument(text)
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Return a parser of numbers above 0."""

    def number(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(0)
        if not (value > 0 and math.isfinite(value)):
            message = f"must be a number above 0, not {decode_argument(text)}"
            raise argparse.ArgumentTypeError(message)
        return value

    return number
