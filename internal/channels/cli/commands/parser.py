"""The argument parser, and options that several commands share. Standard library only."""

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.channels.cli.task_request import decode_argument

TASK_ID_HELP = "a task, run or session id, or the beginning of one"
OUTPUT_FORMATS = ("text", "json", "stream-json")


class _Subcommands(argparse._SubParsersAction):  # type: ignore[type-arg] # noqa: SLF001 - not public
    """Subcommands that keep the options before them: both parsers accept some options."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Parse the rest with the parser of the subcommand."""
        chosen = self.choices.get(values[0]) if values else None
        for action in chosen._actions if chosen else ():  # noqa: SLF001 - as above
            if action.option_strings and hasattr(namespace, action.dest):
                action.default = argparse.SUPPRESS
        super().__call__(parser, namespace, values, option_string)


class CliParser(argparse.ArgumentParser):
    """An argument parser that reports an error as one sentence.

    Options may stand anywhere: before and after a subcommand, and between positional arguments.
    """

    def __init__(self, **keywords: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"allow_abbrev": False, "formatter_class": formatter, **keywords})
        self.register("action", "parsers", _Subcommands)
        self._is_mixed = False

    def parse_known_args(  # type: ignore[override] # fewer overloads
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse arguments; where some are left, once more with options between positional ones."""
        parsed, left = super().parse_known_args(args, namespace)
        is_group = any(each.nargs == argparse.PARSER for each in self._actions)
        if not left or namespace is not None or is_group or self._is_mixed:
            return parsed, left
        # in this form argparse parses twice, and calls this method
        self._is_mixed = True
        try:
            return super().parse_known_intermixed_args(args)
        finally:
            self._is_mixed = False

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
