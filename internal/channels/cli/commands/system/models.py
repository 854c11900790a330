"""`larkspur models`: list the known models. Each subcommand is a module of its own."""

from argparse import Namespace

from internal.channels.cli.application import ListedModel
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import CliParser, add_config, add_json
from internal.channels.cli.commands.system import model_key, model_lessons, model_list
from internal.channels.cli.exit_codes import OK
from internal.channels.cli.output import Output

_SUBCOMMANDS = (model_list, model_key, model_lessons)
_HEADER = ("provider", "model", "key", "context", "output", "in $/M", "out $/M", "cached $/M")


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "models", description="List the known models with their limits, prices and API keys."
    )
    add_json(parser)
    add_config(parser)
    parser.set_defaults(run=run)
    subcommands = parser.add_subparsers(metavar="COMMAND", parser_class=CliParser)
    for module in _SUBCOMMANDS:
        module.register(subcommands)


def run(args: Namespace, context: CommandContext) -> int:
    """List the models."""
    application, output = context.application(), CommandOutput(Output(), args.json)
    models = application.models(args.config)
    if args.json:
        return output.json([one._asdict() for one in models])
    output.rows([_HEADER, *map(_cells, models)])
    output.line(
        f"* in use. List prices as of {application.prices_as_of}; - is unknown."
        " Other models of a provider can be used too."
    )
    return OK


def _cells(model: ListedModel) -> tuple[str, ...]:
    price = model.price or {}
    dollars = [price.get(name) for name in ("input", "output", "cache_read")]
    return (
        model.provider,
        f"{model.model}{' *' * model.in_use}",
        model.key,
        *("-" if n is None else f"{n:,}" for n in (model.context_window, model.max_output_tokens)),
        *("-" if dollar is None else f"{dollar:g}" for dollar in dollars),
    )
