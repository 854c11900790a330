"""The command line of the commands that look and ask. Standard library only."""

import argparse
from collections.abc import Callable

from internal.channels.cli.task_request import decode_argument

_ID = "a task, run or session, or what its id begins with"


def _sessions(parser: argparse.ArgumentParser) -> None:
    """List sessions; show ID, export ID [FILE], rm ID …, rename ID TITLE."""
    whats = ("list", "show", "export", "rm", "rename")
    parser.add_argument("what", nargs="?", choices=whats, default="list", help="list without it")
    parser.add_argument("rest", nargs="*", type=decode_argument, metavar="ID …", help=_ID)
    _add_json(parser)


def _tasks(parser: argparse.ArgumentParser) -> None:
    """List the newest tasks."""
    parser.add_argument(
        "--session", type=decode_argument, metavar="ID", help="of this session alone"
    )
    _add_json(parser)


def _watch(parser: argparse.ArgumentParser) -> None:
    """Show a task from its beginning until it ends; Ctrl+C leaves it alone."""
    parser.add_argument("id", type=decode_argument, metavar="ID", help=_ID)
    _add_json(parser)


def _say(parser: argparse.ArgumentParser) -> None:
    """Steer a task at work with words."""
    parser.add_argument("id", type=decode_argument, metavar="ID", help=_ID)
    parser.add_argument("text", nargs="+", type=decode_argument, metavar="TEXT", help="what to say")


def _stop(parser: argparse.ArgumentParser) -> None:
    """Stop a task."""
    parser.add_argument("id", type=decode_argument, metavar="ID", help=_ID)


def _cost(parser: argparse.ArgumentParser) -> None:
    """Say what was used and what it cost."""
    keys = ("day", "session", "model")
    parser.add_argument("--by", choices=keys, default="day", help="what is summed up (day)")
    _add_json(parser)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _completion(parser: argparse.ArgumentParser) -> None:
    """Print what makes a shell complete this command: put it where your shell reads it."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="your shell")


LOOKUPS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "sessions": _sessions,
    "tasks": _tasks,
    "watch": _watch,
    "say": _say,
    "stop": _stop,
    "cost": _cost,
}
"""Each takes `--server`, `--local` and `--config` besides."""
COMPLETION: dict[str, Callable[[argparse.ArgumentParser], None]] = {"completion": _completion}
