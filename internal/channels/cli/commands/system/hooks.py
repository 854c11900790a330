"""`larkspur hooks`: list the hooks and webhooks of the settings, test them, make a secret."""

from argparse import Namespace
from collections.abc import Sequence
from http import HTTPStatus

from internal.channels.cli.application import HookAdmin, HookItem, HookTrial
from internal.channels.cli.command_output import CommandOutput, one_line
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, add_json, text_argument
from internal.channels.cli.exit_codes import FAILED, OK, USAGE, CliExit
from internal.channels.cli.output import Output, print_error
from internal.hooks.signature import make_secret
from internal.i18n.catalog import MessageCatalog

_MAX_COLUMNS = 1_000
_ADVICE: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "hook_advice_secret",
    HTTPStatus.FORBIDDEN: "hook_advice_secret",
    HTTPStatus.NOT_FOUND: "hook_advice_path",
    HTTPStatus.METHOD_NOT_ALLOWED: "hook_advice_path",
    HTTPStatus.GONE: "hook_advice_path",
    HTTPStatus.BAD_REQUEST: "hook_advice_content",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "hook_advice_content",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "hook_advice_content",
    HTTPStatus.UNPROCESSABLE_ENTITY: "hook_advice_content",
}


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "hooks",
        description="List the hooks and webhooks of the settings. `test` sends a signed test event"
        " to each webhook; `test NAME` does so for one, or asks the hook of this name about an"
        " example. `secret` prints a new secret.",
    )
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "test", "secret"), help="action"
    )
    parser.add_argument("name", nargs="?", type=text_argument, help="hook or webhook, for test")
    add_json(parser)
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action.

    Raises:
        CliExit: the arguments are wrong, or no hook or webhook has this name.
    """
    if args.name is not None and args.action != "test":
        raise CliExit(USAGE, f"larkspur hooks {args.action} takes no name.")
    output = CommandOutput(Output(), args.json)
    if args.action == "secret":
        secret = make_secret()
        return output.json({"secret": secret}) if output.as_json else output.rows([[secret]])
    hooks = context.application().hooks(args.config)
    items, messages = hooks.items(), context.messages
    if not items and (args.name is not None or not output.as_json):
        print_error(messages("no_hooks"))
    if args.action == "test":
        return _test(hooks, _named(items, args.name, messages), output, messages)
    output.items(items)
    if not output.as_json:
        for item in items:
            if not item.suits_libraries:
                print_error(messages("hook_secret", name=one_line(item.name)))
    return OK


def _named(
    items: Sequence[HookItem], name: str | None, messages: MessageCatalog
) -> Sequence[HookItem]:
    """Return the items of a name, without one the webhooks.

    Raises:
        CliExit: none has this name.
    """
    if name is not None:
        found = [each for each in items if each.name == name]
        if not found:
            names = _names(items)
            sentence = messages("hook_unknown", name=one_line(name), names=names)
            raise CliExit(USAGE, sentence if items else "")
        return found
    if hooks := [each for each in items if each.kind == "hook"]:
        print_error(messages("hooks_not_asked", names=_names(hooks)))
    return [each for each in items if each.kind == "webhook"]


def _names(items: Sequence[HookItem]) -> str:
    return ", ".join(dict.fromkeys(one_line(each.name) for each in items))


def _test(
    hooks: HookAdmin, items: Sequence[HookItem], output: CommandOutput, messages: MessageCatalog
) -> int:
    """Try items one after the other and show each outcome; return 1 if one is no success."""
    trials: list[HookTrial] = []
    for item in items:
        trials.append(hooks.try_out(item))
        if not output.as_json:
            output.line(one_line(_sentence(trials[-1], messages), _MAX_COLUMNS))
            if _is_failure(trials[-1]) and not item.suits_libraries:
                output.line(messages("hook_secret", name=one_line(item.name)))
    if output.as_json:
        output.json([each._asdict() for each in trials])
    return FAILED if any(map(_is_failure, trials)) else OK


def _is_failure(trial: HookTrial) -> bool:
    return trial.outcome in {"failed", "rejected"}


def _sentence(trial: HookTrial, messages: MessageCatalog) -> str:
    facts = {
        "name": trial.name,
        "status": trial.status,
        "milliseconds": round(trial.seconds * 1000),
        "words": trial.words,
    }
    parts = [messages(f"hook_{trial.outcome}", **facts)]
    if trial.words and trial.outcome != "failed":
        parts.append(messages("hook_words", **facts))
    if trial.outcome == "rejected":
        parts.append(messages(_advice(trial), location=trial.location))
    return " ".join(parts)


def _advice(trial: HookTrial) -> str:
    if HTTPStatus.MULTIPLE_CHOICES <= trial.status < HTTPStatus.BAD_REQUEST:
        return "hook_advice_moved" if trial.location else "hook_advice_no_redirect"
    return _ADVICE.get(trial.status, "hook_advice_later")
