"""`larkspur models key`: enter the key of a provider."""

import os
from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import answering_gateway
from internal.channels.cli.commands.key_entry import choose_provider, read_hidden, read_piped
from internal.channels.cli.exit_codes import OK, USAGE, CliExit
from internal.channels.cli.output import print_error
from internal.channels.cli.transports.http import HttpTransport
from internal.channels.cli.transports.interface import drive


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "key",
        description="Ask for the key of a provider, which is not shown, and store it in the home"
        " folder. A running gateway uses it at once. Without a terminal, the key is the first line"
        " of standard input.",
    )
    parser.add_argument(
        "provider", nargs="?", default="", help="default: the one whose keys look like this"
    )
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Store a key."""
    messages = context.messages
    is_terminal = os.isatty(0)
    text = read_hidden(messages("model_key")) if is_terminal else read_piped()
    key = context.application().clean_key(text)
    if not key:
        raise CliExit(USAGE, messages("model_key_none"))
    provider = args.provider or _find_provider(key, context, can_ask=is_terminal)
    gateway = answering_gateway()
    if gateway is None:
        title = context.application().store_key(provider, key)
        print_error(messages("model_key_stored", provider=title))
        return OK

    async def store() -> int:
        title = await GatewayClient(HttpTransport(gateway, lambda: None)).store_key(provider, key)
        print_error(messages("model_key_used", provider=title, gateway=gateway.url))
        return OK

    return drive(store())


def _find_provider(key: str, context: CommandContext, *, can_ask: bool) -> str:
    """Return the name of the provider whose key this is.

    Raises:
        CliExit: it is not known.
    """
    known = context.application().find_providers_of_key(key)
    if not known:
        raise CliExit(USAGE, context.messages("model_key_unknown"))
    chosen = choose_provider(known, context.messages) if can_ask or len(known) == 1 else None
    if chosen is None:
        names = ", ".join(name for name, _ in known)
        raise CliExit(USAGE, context.messages("model_key_ambiguous", names=names))
    return chosen[0]
