"""The command line of the commands about people: questions, rights, rules. Standard library only.

Each takes `--server`, `--local` and `--config` besides.
"""

import argparse
from collections.abc import Callable
from typing import Any

from internal.channels.cli.task_request import decode_argument

_ROLES = ("talk", "operate", "owner")


def _questions(parser: argparse.ArgumentParser) -> None:
    """List the questions that wait for a person, and how to answer them."""
    parser.add_argument("--all", action="store_true", help="those that are closed as well")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _answer(parser: argparse.ArgumentParser) -> None:
    """Answer a question; its run goes on, here when no gateway runs."""
    add = parser.add_argument
    add(
        "question", type=decode_argument, metavar="QUESTION", help="its id, or its beginning or end"
    )
    add(
        "decision",
        nargs="+",
        type=decode_argument,
        metavar="DECISION",
        help="yes, no, no because …, session, rule, numbers of options, edit, or your own words",
    )
    many: dict[str, Any] = {"action": "append", "default": [], "type": decode_argument}
    add("--step", metavar="TEXT", dest="steps", help="a step of the edited plan", **many)
    add("--steps", metavar="FILE", dest="file", help="its steps, one a line; - is standard input")
    add(
        "--goal",
        metavar="TEXT",
        type=decode_argument,
        default="",
        help="its goal; the old one without",
    )
    add("--item", metavar="CALL=yes|no", dest="items", help="for one call alone", **many)
    add("--rule", metavar="RULE", dest="rules", help="in place of the offered rules", **many)
    add("--wait", action="store_true", help="follow a gateway's run and print its answer")
    _add_format(parser)


def _resume(parser: argparse.ArgumentParser) -> None:
    """Go on where a failed or stopped task ended, and print the answer."""
    add = parser.add_argument
    add("id", type=decode_argument, metavar="TASK", help="a task, run or session, or its beginning")
    _add_format(parser)


def _pair(parser: argparse.ArgumentParser) -> None:
    """Make a code that gives a person of a channel a right; list people, remove ID."""
    whats = ("list", "remove")
    parser.add_argument("what", nargs="?", choices=whats, help="a code without it")
    parser.add_argument("id", nargs="?", type=decode_argument, metavar="ID", help="whom to remove")
    parser.add_argument("--role", choices=_ROLES, default="operate", help="which right (operate)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _rules(parser: argparse.ArgumentParser) -> None:
    """List the rules that people wrote by answering; remove N."""
    whats = ("list", "remove")
    parser.add_argument("what", nargs="?", choices=whats, default="list", help="list without it")
    parser.add_argument("number", nargs="?", type=int, metavar="N", help="which to remove")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _audit(parser: argparse.ArgumentParser) -> None:
    """Say who did what: asked, answered, stopped, allowed, paired."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_format(parser: argparse.ArgumentParser) -> None:
    formats = ("text", "json", "stream-json")
    parser.add_argument(
        "--output-format", choices=formats, default="text", help="what is printed (text)"
    )


PEOPLE: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "questions": _questions,
    "answer": _answer,
    "resume": _resume,
    "pair": _pair,
    "rules": _rules,
    "audit": _audit,
}
