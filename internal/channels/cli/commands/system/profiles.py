"""`larkspur profiles`: list, show, check and create profiles."""

import os
from argparse import Namespace
from pathlib import Path

from internal.channels.cli.application import ListedProfile
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, add_json, text_argument
from internal.channels.cli.exit_codes import CONFIG, OK, USAGE, CliExit
from internal.channels.cli.output import Output
from internal.config.home import PROFILE_NAME

_TEMPLATE = """\
# A profile says who the agent is in a task. Every key is optional; docs/profiles.md explains them.
# It is used with --profile {name}, /profile {name}, or profile: {name} in the settings.
description: What it is for, in one line
extends: default
role: a careful assistant that does real work with its tools
# goal: what it tries to achieve
# tone: how it writes
# instructions: |
#   - What it does and does not do.
# tools: {{remove: [shell, run_code]}}       # or a list of the only tools
# permission_mode: ask                      # the widest mode of its tasks
# network: off                              # what isolated commands reach without asking
# model: claude-sonnet-5
# language: en                              # or zh
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "profiles", description="List, show and check profiles, or create the file of a new one."
    )
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "show", "check", "new"), help="action"
    )
    parser.add_argument("name", nargs="?", type=text_argument, help="profile, for show and new")
    add_json(parser)
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action.

    Raises:
        CliExit: the profile is unknown or cannot be used, or its file exists.
    """
    if (args.name is None) == (args.action in {"show", "new"}):
        wants = "needs the name of a profile" if args.name is None else "takes no name"
        raise CliExit(USAGE, f"larkspur profiles {args.action} {wants}.")
    application, output = context.application(), CommandOutput(Output(), args.json)
    if args.action == "new":
        return _create(application.settings(args.config).home, args.name, output)
    found = application.profiles(args.config)
    match args.action:
        case "list":
            return _list(found, output)
        case "check":
            return _check(found, output)
        case _:
            return _show(found, args.name, output)


def _list(found: list[ListedProfile], output: CommandOutput) -> int:
    if output.as_json:
        return output.json([one._asdict() for one in found])
    output.rows([(f"{one.name}{' *' * one.in_use}", one.problem or one.summary) for one in found])
    output.line("* is the default.")
    return OK


def _check(found: list[ListedProfile], output: CommandOutput) -> int:
    wrong = [one for one in found if one.problem]
    reported = [*wrong, *(one for one in found if one.warning)]
    if output.as_json:
        output.json([one._asdict() for one in reported])
    else:
        for one in reported:
            output.line(one.problem or one.warning)
        output.line(f"{len(found) - len(wrong)} profiles can be used, {len(wrong)} cannot.")
    return CONFIG if wrong else OK


def _show(found: list[ListedProfile], name: str, output: CommandOutput) -> int:
    profile = next((one for one in found if one.name == name), None)
    if profile is None:
        names = ", ".join(one.name for one in found)
        raise CliExit(USAGE, f"There is no profile {name}. Profiles: {names}.")
    if profile.problem:
        raise CliExit(CONFIG, profile.problem)
    if output.as_json:
        return output.json(profile._asdict())
    output.line(f"# {profile.source}")
    for key, value in profile.values.items():
        if isinstance(value, str) and "\n" in value:
            output.line("\n".join([f"{key}: |", *(f"  {line}" for line in value.splitlines())]))
        else:
            shown = ", ".join(value) if isinstance(value, list | tuple) else value
            output.line(f"{key}: {shown}")
    return OK


def _create(home: Path, name: str, output: CommandOutput) -> int:
    if not PROFILE_NAME.fullmatch(name):
        raise CliExit(USAGE, "Use lower-case letters, digits, - and _ for the name of a profile.")
    path = home / "profiles" / f"{name}.yaml"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_TEMPLATE.format(name=name))
    except FileExistsError:
        raise CliExit(USAGE, f"{path} exists.") from None
    except OSError as error:
        raise CliExit(CONFIG, f"{path} cannot be written: {error.strerror}.") from None
    if output.as_json:
        return output.json({"name": name, "path": str(path)})
    output.line(str(path))
    return OK
