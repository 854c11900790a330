"""`larkspur events`: print the schema of the event stream."""

import json
from argparse import Namespace

from internal.agent.domain.events import schema
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.exit_codes import OK
from internal.channels.cli.output import Output


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser("events", description="Print the schema of the event stream.")
    parser.add_argument("action", choices=("schema",), help="print the JSON Schema")
    parser.add_argument("--markdown", action="store_true", help="print a reference in Markdown")
    parser.set_defaults(run=run)


def run(args: Namespace, _context: CommandContext) -> int:
    """Print the schema."""
    if args.markdown:
        text = schema.markdown()
    else:
        text = json.dumps(schema.json_schema(), indent=2, ensure_ascii=False) + "\n"
    Output().write(text.encode())
    return OK
