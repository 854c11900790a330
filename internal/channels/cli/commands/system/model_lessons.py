"""`larkspur models show` and `forget`: learned refusals of model servers, and repaired calls."""

from argparse import ArgumentParser, Namespace

from internal.channels.cli.command_output import CommandOutput, one_line
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, add_json
from internal.channels.cli.exit_codes import OK
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.task_request import decode_argument

_WORDS_COLUMNS = 400


def register(subparsers: Subparsers) -> None:
    """Add the subcommands."""
    parser = subparsers.add_parser(
        "show",
        description="Show what the servers of models refused, which is not sent to them again, and"
        " how often the calls of models were repaired.",
    )
    _add_model(parser)
    add_json(parser)
    add_config(parser)
    parser.set_defaults(run=show)
    parser = subparsers.add_parser(
        "forget", description="Let what the servers of models refused be tried again."
    )
    _add_model(parser)
    add_config(parser)
    parser.set_defaults(run=forget)


def show(args: Namespace, context: CommandContext) -> int:
    """Show the lessons about a model and its repaired calls, or all."""
    output, model = CommandOutput(Output(), args.json), args.model
    lessons = context.application().lessons(args.config)
    # what holds for all models of an address holds for this one too
    found = [each for each in lessons.list_all() if model is None or each.model in {"", model}]
    repairs = [each for each in lessons.list_repairs() if model in {None, each.model}]
    if output.as_json:
        refused = [each._asdict() for each in found]
        return output.json({"refused": refused, "repaired": [one._asdict() for one in repairs]})
    if not found and not repairs:
        print_error(context.messages("no_lessons"))
    for each in found:
        name = each.model or context.messages("all_models")
        output.line(
            f"{each.learned[:10]}  {name}  {each.provider} {each.address}  {each.refused}"
            f" ({each.since})"
        )
        output.line(f"    {one_line(each.words, _WORDS_COLUMNS)}")
    for one in repairs:
        kinds = ", ".join(f"{kind} {count}" for kind, count in one.kinds.items())
        said = context.messages("calls_repaired", kinds=kinds)
        output.line(f"{one.last[:10]}  {one.model}  {one.provider}  {said}")
    return OK


def forget(args: Namespace, context: CommandContext) -> int:
    """Remove the lessons about a model, or all."""
    count = context.application().lessons(args.config).forget(args.model)
    print_error(context.messages("lessons_forgotten", count=count))
    return OK


def _add_model(parser: ArgumentParser) -> None:
    parser.add_argument(
        "model", nargs="?", type=decode_argument, metavar="MODEL", help="only this model"
    )
