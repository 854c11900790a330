"""`larkspur skills`: add, review, list, check and remove skills."""

import os
from argparse import Namespace

from internal.channels.cli.application import SkillAdmin, SkillItem, SkillReport
from internal.channels.cli.command_output import CommandOutput, one_line
from internal.channels.cli.commands.confirmation import confirms
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, add_json
from internal.channels.cli.exit_codes import DENIED, FAILED, OK, USAGE, WAITING, CliExit
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.task_request import decode_argument

_ACTIONS = ("list", "show", "add", "review", "remove", "check")
_USAGE = (
    "Usage: larkspur skills [list] | show NAME | add PATH_OR_ZIP | review NAME… [--yes]"
    " [--rule RULE] | review --all [--yes] | remove NAME… | check [PATH]"
)
_MAX_COLUMNS = 500
_WAITING = frozenset({"not reviewed", "changed since its review"})
_KEPT = frozenset({"own", "shared"})
"""A folder that somebody works in brings skills of its own, which are named one by one."""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "skills", description="List, show, add, review, remove and check skills.", epilog=_USAGE
    )
    parser.add_argument("action", nargs="?", choices=_ACTIONS, default="list", help="what to do")
    parser.add_argument("what", nargs="*", type=decode_argument, help="names or a path")
    parser.add_argument("--all", action="store_true", help="review all skills that wait for it")
    parser.add_argument("--yes", action="store_true", help="accept without a question")
    parser.add_argument(
        "--rule",
        action="append",
        type=decode_argument,
        metavar="RULE",
        help="grant a permission rule that the skill asks for; can be repeated",
    )
    add_json(parser)
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action."""
    output = CommandOutput(Output(), args.json)
    if _is_wrong(args):
        raise CliExit(USAGE, _USAGE)
    first = args.what[0] if args.what else "."
    skills = context.application().skills(args.config)
    match args.action:
        case "list":
            return _list(skills.skills(), output, context)
        case "check":
            return _check(skills, first, output)
        case "add":
            return _add(skills, first, context)
        case "remove":
            for name in args.what:
                print_error(context.messages("removed", what=skills.remove(name).name))
        case _:
            return _review(skills, args, context, output)
    return OK


def _is_wrong(args: Namespace) -> bool:
    """Return True if the arguments do not fit the action."""
    count = len(args.what)
    match args.action:
        case "list":
            return bool(count or args.rule or args.all)
        case "check":
            return count > 1 or bool(args.rule or args.all)
        case "review":
            return bool(count) == args.all or bool(args.rule and (args.all or count > 1))
        case "remove":
            return not count or bool(args.rule or args.all)
        case _:
            return count != 1 or bool(args.rule or args.all)


def _add(skills: SkillAdmin, source: str, context: CommandContext) -> int:
    """Add a skill or a collection of some; one that cannot be added is reported."""
    added, problems = skills.add(source)
    for problem in problems:
        print_error(one_line(problem, _MAX_COLUMNS))
    if len(added) == 1:
        print_error(context.messages("skill_added", name=added[0].name))
    elif added:
        names = ", ".join(each.name for each in added)
        print_error(context.messages("skills_added", count=len(added), names=names))
    return FAILED if problems else OK


def _list(found: list[SkillItem], output: CommandOutput, context: CommandContext) -> int:
    if not found and not output.as_json:
        print_error(context.messages("no_skills"))
    output.items(found)
    if not output.as_json:
        for problem in (problem for one in found for problem in one.problems):
            print_error(one_line(problem, _MAX_COLUMNS))
    return OK


def _check(skills: SkillAdmin, folder: str, output: CommandOutput) -> int:
    warnings = skills.check(folder)
    if output.as_json:
        output.json(warnings)
    for warning in () if output.as_json else warnings:
        output.line(one_line(warning, _MAX_COLUMNS))
    return FAILED if warnings else OK


def _review(
    skills: SkillAdmin, args: Namespace, context: CommandContext, output: CommandOutput
) -> int:
    """Show skills, and for `review` accept them if a person agrees.

    Rules are granted for a single skill only.

    Raises:
        CliExit: the answer is no; without a terminal there is no answer.
    """
    names = args.what or [
        each.name for each in skills.skills() if each.state in _WAITING and each.origin in _KEPT
    ]
    reports = [skills.review(name) for name in names]
    if output.as_json:
        shown = [{**report._asdict(), "item": report.item._asdict()} for report in reports]
        output.json(shown if args.all or len(names) > 1 else shown[0])
    for report in () if output.as_json else reports:
        _show(report, context, output)
    if args.action == "show":
        return OK
    if not reports:
        print_error(context.messages("no_skill_to_review"))
        return OK
    if not args.yes:
        _ask(reports, context)
    for report in reports:
        asks = len(reports) == 1 and not args.yes
        rules = args.rule or (_granted(report, context) if asks else [])
        skills.accept(report.item, rules)
        print_error(context.messages("skill_accepted", name=report.item.name))
        for rule in rules:
            print_error(context.messages("rule_granted", rule=rule))
    return OK


def _ask(reports: list[SkillReport], context: CommandContext) -> None:
    """Ask a person once about all skills that were shown.

    Raises:
        CliExit: the answer is no; without a terminal there is no answer.
    """
    names = ", ".join(report.item.name for report in reports)
    if not (os.isatty(0) and os.isatty(2)):
        raise CliExit(WAITING, context.messages("accept_with_yes", name=names))
    key = "accept_skill" if len(reports) == 1 else "accept_skills"
    question = context.messages(key, name=names, names=names, count=len(reports))
    if not confirms(question, context, default=False):
        raise CliExit(DENIED)


def _granted(report: SkillReport, context: CommandContext) -> list[str]:
    """Ask about each rule and return the granted ones."""
    offered = dict.fromkeys(rule for _, rule, _ in report.requested if rule)
    return [
        rule
        for rule in offered
        if confirms(context.messages("grant_rule", rule=rule), context, default=False)
    ]


def _show(report: SkillReport, context: CommandContext, output: CommandOutput) -> None:
    item = report.item
    output.line(f"{item.name}: {item.state}")
    output.line(one_line(item.description, 5_000))
    output.line(f"{one_line(item.folder, _MAX_COLUMNS)} ({item.origin})")
    output.line(f"sha256 {item.sha256}")
    kinds = {**dict.fromkeys(report.binary, "binary"), **dict.fromkeys(report.scripts, "script")}
    output.rows(
        [
            (path, f"{size:,}", f"link to {link}" if link else kinds.get(path, ""))
            for path, size, link in report.files
        ]
    )
    if report.requested:
        output.line(context.messages("requested_tools"))
    for entry, rule, refusal in report.requested:
        key = f"requested_{refusal.replace(' ', '_')}" if refusal else "requested_rule"
        answer = context.messages(key, rule=rule)
        output.line(one_line(f"  {entry}: {answer}", 2 * _MAX_COLUMNS))
    for title, lines in (
        ("problem", item.problems),
        ("invisible character", report.invisible),
        ("lacking", report.lacks),
    ):
        for line in lines:
            output.line(f"{title}: {one_line(line, _MAX_COLUMNS)}")
