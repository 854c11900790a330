"""`larkspur debug`: print what the model gets."""

from argparse import Namespace
from pathlib import Path

from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, add_json
from internal.channels.cli.exit_codes import OK
from internal.channels.cli.output import Output, print_error


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser("debug", description="Print what the model gets.")
    parser.add_argument(
        "subject",
        choices=("prompt",),
        help="the system prompt and the instructions of a task in this folder",
    )
    add_json(parser)
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Print the system prompt and the instructions; ignored files go to standard error."""
    prompt = context.application().prompt(args.config, Path.cwd())
    if args.json:
        return CommandOutput(Output(), as_json=True).json(prompt._asdict())
    text = "\n\n".join(filter(None, (prompt.system.strip(), prompt.instructions.strip())))
    Output().write(f"{text}\n".encode("utf-8", "replace"))
    for problem in prompt.problems:
        print_error(problem)
    return OK
