"""`larkspur debug`: print the input of the model."""

from argparse import Namespace
from pathlib import Path

from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, add_json, text_argument
from internal.channels.cli.exit_codes import OK
from internal.channels.cli.output import Output, print_error


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser("debug", description="Print what the model gets.")
    parser.add_argument(
        "subject",
        choices=("prompt",),
        help="the system prompt, the instructions and the tools of a task in this folder",
    )
    parser.add_argument("--profile", type=text_argument, help="profile of the task")
    parser.add_argument(
        "--skills", nargs="*", type=text_argument, metavar="NAME", help="only these skills"
    )
    add_json(parser)
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Print the prompt; with `--json` also the schemas of the tools.

    Sentences on instruction files and skills that are not used go to standard error.
    """
    prompt = context.application().prompt(
        args.config, Path.cwd(), profile=args.profile, skills=args.skills
    )
    if args.json:
        return CommandOutput(Output(), as_json=True).json(prompt._asdict())
    tools = "\n".join(f"- {tool['name']}" for tool in prompt.tools)
    texts = (prompt.system.strip(), prompt.instructions.strip(), f"Tools:\n{tools}")
    text = "\n\n".join(filter(None, texts))
    Output().write(f"{text}\n".encode("utf-8", "replace"))
    for problem in prompt.problems:
        print_error(problem)
    return OK
