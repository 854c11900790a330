"""`larkspur open`: log in to the page with a new link."""

from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.browser import open_browser
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_gateway
from internal.channels.cli.commands.parser import add_json, add_server
from internal.channels.cli.exit_codes import OK
from internal.channels.cli.output import Output, print_error
from internal.config import home as home_folder


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "open", description="Print a link that logs in one browser, and open it where there is one."
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the link")
    add_json(parser)
    add_server(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Create the link, print it and open it."""
    output = CommandOutput(Output(), args.json)

    async def work(client: GatewayClient) -> int:
        url, seconds = await client.create_link()
        if output.as_json:
            return output.json({"url": url, "seconds": seconds})
        output.line(url)
        opened = not args.no_browser and open_browser(url, home_folder.locate())
        name = "page_opened" if opened else "page_link"
        print_error(context.messages(name, minutes=round(seconds / 60)))
        return OK

    return run_with_gateway(args, work)
