"""The list of commands, and dispatch of a command line. Standard library only.

A new command is one module with `register(subparsers)` and one entry here. A command's module is
imported only when the command is used, or to print a shell completion.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import NamedTuple

from internal.channels.cli.command_output import one_line
from internal.channels.cli.commands import start_options
from internal.channels.cli.commands.confirmation import confirms
from internal.channels.cli.commands.context import CommandContext, Run
from internal.channels.cli.commands.parser import CliParser
from internal.channels.cli.exit_codes import USAGE, CliExit

_PACKAGE = "internal.channels.cli.commands"
_SIMILARITY = 0.75
"""Ratio of `difflib` from which a word counts as a mistyped command."""


class Subcommand(NamedTuple):
    """A command: its name, its module below this package, and its line in `larkspur --help`.

    `has_rest`: the words after `--` are not parsed; they are in `args.rest`.
    """

    name: str
    module: str
    summary: str
    has_rest: bool = False


COMMANDS: tuple[Subcommand, ...] = (
    Subcommand("serve", "system.serve", "run the gateway: web page, Lark, tasks of all channels"),
    Subcommand("worker", "system.worker", "execute runs beside gateways, on PostgreSQL"),
    Subcommand("open", "system.open", "open the page in a browser, or print a link to it"),
    Subcommand("tasks", "tasks.tasks", "list tasks, show and apply what one changed"),
    Subcommand("watch", "tasks.watch", "show a task until it ends"),
    Subcommand("say", "tasks.say", "steer a running task"),
    Subcommand("stop", "tasks.stop", "stop a task"),
    Subcommand("resume", "tasks.resume", "continue a failed or stopped task"),
    Subcommand("questions", "tasks.questions", "list the questions that wait for a person"),
    Subcommand("answer", "tasks.answer", "answer a question"),
    Subcommand("sessions", "records.sessions", "list, show, export, delete and rename sessions"),
    Subcommand("files", "records.files", "list the files that runs made, and save one"),
    Subcommand("cost", "records.cost", "show tokens and cost"),
    Subcommand("pair", "records.pair", "grant roles to people of a channel"),
    Subcommand("rules", "records.rules", "list and delete permission rules"),
    Subcommand("skills", "records.skills", "add, review, list, check and remove skills"),
    Subcommand(
        "mcp", "records.mcp", "add, review, list and remove MCP servers; serve as one", True
    ),
    Subcommand("audit", "records.audit", "list who did what"),
    Subcommand("feedback", "records.feedback", "list what people think of the answers"),
    Subcommand("dead-letters", "records.dead_letters", "list and retry what was given up"),
    Subcommand("db", "system.db", "show, back up, export, clean up and move the database"),
    Subcommand("doctor", "system.doctor", "check the installation"),
    Subcommand("models", "system.models", "list models, enter a key, show and forget refusals"),
    Subcommand("hooks", "system.hooks", "list hooks and webhooks, test them, make a secret"),
    Subcommand("profiles", "system.profiles", "list, show, check and create profiles"),
    Subcommand("trust", "system.trust", "let agents follow instructions that a command wrote"),
    Subcommand("debug", "system.debug", "print the prompt of the model in this folder"),
    Subcommand("config", "system.config", "show the settings"),
    Subcommand("events", "system.events", "print the schema of the event stream"),
    Subcommand("lark-sim", "system.lark_sim", "run a simulator of Lark"),
    Subcommand("completion", "system.completion", "print a shell completion script"),
)


def dispatch(
    argv: Sequence[str], context: CommandContext, commands: Sequence[Subcommand] = COMMANDS
) -> int:
    """Parse a command line, execute its command and return the exit code.

    Raises:
        CliExit: the command line is wrong, or the command fails.
        SystemExit: help was printed.
    """
    command = next((one for one in commands if argv and one.name == argv[0]), None)
    if command is not None:
        parser = build_parser([command])
        if command.has_rest:
            own, rest = _split(argv)
            args = parser.parse_args(own)
            args.rest = rest
        else:
            args = parser.parse_args(argv)
        run: Run = args.run
        return run(args, context)
    args = start_options.build_parser(_summaries(commands)).parse_args(argv)
    if args.version:
        sys.stdout.write(f"larkspur {context.version}\n")
        return 0
    meant = None if args.shot is not None or "--" in argv else _mistyped(args.prompt, commands)
    if meant is None or not _confirms(args.prompt, meant, context):
        start: Run = import_module(f"{_PACKAGE}.start").run
        return start(args, context)
    return dispatch([meant], context, commands)


def _split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words before and after the first `--`."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1 :]


def build_parser(commands: Sequence[Subcommand] = COMMANDS) -> CliParser:
    """Return the parser of commands, each registered by its module."""
    parser = CliParser(prog="larkspur")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=CliParser)
    for command in commands:
        import_module(f"{_PACKAGE}.{command.module}").register(subparsers)
    return parser


def registered(commands: Sequence[Subcommand] = COMMANDS) -> Iterator[tuple[str, CliParser]]:
    """Yield the name and the parser of every command."""
    for action in build_parser(commands)._actions:  # noqa: SLF001 - argparse has no public API for it
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            yield from action.choices.items()


def _mistyped(prompt: str | None, commands: Sequence[Subcommand]) -> str | None:
    """Return the command that a prompt of a single word resembles, None if it is a task."""
    if prompt is None or len(prompt.split()) != 1:
        return None
    from difflib import get_close_matches  # noqa: PLC0415 - not for -p, which must start fast

    names = [one.name for one in commands]
    close = get_close_matches(prompt.strip().lower(), names, n=1, cutoff=_SIMILARITY)
    return close[0] if close else None


def _confirms(word: str, meant: str, context: CommandContext) -> bool:
    """Ask whether a command is meant; False if the word is a task, which may cost money.

    Raises:
        CliExit: there is no terminal to ask on, or the answer is neither yes nor no.
    """
    word = one_line(word)
    if not (os.isatty(0) and os.isatty(1)):
        sentence = f"Unknown command `{word}`. Did you mean `larkspur {meant}`?"
        raise CliExit(USAGE, f'{sentence} To run it as a task: larkspur -p "{word}"')
    question = context.messages("did_you_mean", word=word, command=f"larkspur {meant}")
    return confirms(question, context, default=True)


def _summaries(commands: Sequence[Subcommand]) -> str:
    return "\n".join(f"  {one.name:<14}{one.summary}" for one in commands)
