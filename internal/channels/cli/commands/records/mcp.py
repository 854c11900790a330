"""`larkspur mcp`: add, import, sign in to, test, review, list and remove servers, and be one."""

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from internal.agent.domain.errors import LarkspurError
from internal.channels.cli import mcp_entries
from internal.channels.cli.application import McpAdmin, McpNeeds, McpReport
from internal.channels.cli.command_output import CommandOutput, one_line
from internal.channels.cli.commands.browser import open_browser
from internal.channels.cli.commands.confirmation import confirms
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import not_running, running_endpoint
from internal.channels.cli.commands.parser import add_config, add_json, add_server
from internal.channels.cli.exit_codes import CONFIG, DENIED, FAILED, OK, USAGE, WAITING, CliExit
from internal.channels.cli.mcp_stdio import McpBridge
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.task_request import decode_argument
from internal.channels.cli.transports.http import HttpEndpoint
from internal.channels.cli.transports.interface import Unreachable
from internal.config import home as home_folder
from internal.config.home import HomeError
from internal.normal_forms.urls import split_url

_ACTIONS = ("list", "show", "add", "import", "login", "logout", "test", "review", "remove", "serve")
_USAGE = (
    "Usage: larkspur mcp [list] | show NAME | add NAME -- COMMAND… | add NAME --url URL"
    " | import FILE [--yes] | login NAME [--open] | logout NAME | test NAME"
    " | review NAME [--yes] | remove NAME | serve [--server URL] [--print-config CLIENT]"
)
_PROJECT_FILES = (".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json")
_MAX_COLUMNS = 4_000
_PIPE_SECONDS, _SHOWN_SECONDS = 30, 5
"""Interval of progress lines without a terminal, and the interval of the reports themselves."""
_MAX_DESCRIPTION_COLUMNS = 2_000
_SEPARATORS = {"env": "=", "header": ":"}


class _Prepared(NamedTuple):
    """A server to add, with the requirements of its command, or None without any."""

    name: str
    entry: Mapping[str, Any]
    needs: McpNeeds | None
    is_imported: bool = False


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "mcp", description="Add, review, list and remove MCP servers; serve as one.", epilog=_USAGE
    )
    parser.add_argument("action", nargs="?", choices=_ACTIONS, default="list", help="what to do")
    parser.add_argument("what", nargs="?", type=decode_argument, help="a name, or a file to import")
    parser.add_argument("--yes", action="store_true", help="accept without a question")
    parser.add_argument("--open", action="store_true", help="open the browser to sign in")
    group = parser.add_argument_group("add")
    many: dict[str, Any] = {"action": "append", "default": [], "type": decode_argument}
    group.add_argument("--url", type=decode_argument, help="address of a server with HTTP")
    group.add_argument("--env", metavar="NAME=VALUE", help="environment variable", **many)
    group.add_argument("--header", metavar="NAME:VALUE", help="header of requests", **many)
    group.add_argument("--network", metavar="HOST", help="host that the command reaches", **many)
    group.add_argument("--read", metavar="PATH", help="path that the command reads", **many)
    group.add_argument("--write", metavar="PATH", help="path that the command changes", **many)
    group.add_argument("--cwd", type=decode_argument, help="folder in which the command works")
    group.add_argument("--risk", choices=("read", "write", "exec", "net"), help="risk of its tools")
    group.add_argument("--login", choices=("shared", "personal"), help="who signs in to it")
    group.add_argument("--private", action="store_true", help="allow a private address")
    add_json(parser)
    add_config(parser)
    serving = parser.add_argument_group("serve")
    add_server(serving)
    serving.add_argument(
        "--print-config",
        nargs="?",
        const="",
        type=decode_argument,
        metavar="CLIENT",
        help="print the entry of an MCP client; without CLIENT, list the clients",
    )
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action."""
    is_whole = args.action in {"list", "serve"}
    prints = args.print_config is not None
    if (
        is_whole == bool(args.what)
        or (args.rest and args.action != "add")
        or (prints and args.action != "serve")
    ):
        raise CliExit(USAGE, _USAGE)
    output = CommandOutput(Output(), args.json)
    if args.action == "serve":
        return _print_entry(args, context, output) if prints else _serve(args, context)
    servers = context.application().mcp(args.config)
    code = OK
    match args.action:
        case "list":
            code = _list(servers, output, context)
        case "add":
            code = _add(servers, args, context)
        case "import":
            code = _import(servers, args, context, output)
        case "remove":
            servers.remove(args.what)
            print_error(context.messages("removed", what=args.what))
        case "show":
            _show(servers.show(args.what), output)
        case "login":
            _log_in(servers, args, context, output)
        case "logout":
            done = servers.sign_out(args.what)
            key = "mcp_signed_out" if done else "mcp_not_signed_in"
            print_error(context.messages(key, name=args.what))
        case _:
            code = _review(servers, args, context, output)
    return code


def _serve(args: Namespace, context: CommandContext) -> int:
    """Be an MCP server on standard input and output, with the tools of the running gateway.

    A gateway that is restarted meanwhile may have another address.

    Raises:
        CliExit: no gateway runs or answers at the start.
    """
    try:
        gateway = running_endpoint(args.server)
    except CliExit as error:
        if error.code != FAILED:
            raise
        raise CliExit(FAILED, f"{error} {context.messages('mcp_entry_hint')}") from None
    if not gateway.answers():
        raise CliExit(CONFIG, f"No gateway answers at {gateway.url}.")

    def endpoint() -> HttpEndpoint:
        try:
            return running_endpoint(args.server)
        except (CliExit, HomeError) as error:
            raise Unreachable(str(error).rstrip(".")) from None

    McpBridge(endpoint, sys.stdin.buffer, sys.stdout.buffer).run()
    return OK


def _print_entry(args: Namespace, context: CommandContext, output: CommandOutput) -> int:
    """Print a client's entry that starts `larkspur mcp serve`; without a name, list the clients.

    Raises:
        CliExit: the client or the URL is unknown, or a path cannot be written into an entry.
    """
    if not args.print_config:
        places = {each.name: each.place for each in mcp_entries.CLIENTS}
        return output.json(places) if output.as_json else output.rows([*places.items()])
    known = {each.name: each for each in mcp_entries.CLIENTS}
    client = known.get(args.print_config)
    if client is None:
        facts = {"name": one_line(args.print_config), "names": ", ".join(known)}
        raise CliExit(USAGE, context.messages("mcp_client_unknown", **facts))
    if args.server is not None:
        HttpEndpoint(args.server, str)  # checks the URL
        if "@" in split_url(args.server).netloc:
            raise CliExit(USAGE, context.messages("mcp_url_with_login"))
    home = home_folder.locate()
    command = mcp_entries.serve_command(home, args.server)
    if command.problem:
        raise CliExit(CONFIG, command.problem)
    entry, adding = client.entry(command), mcp_entries.adding_command(client, command)
    if output.as_json:
        return output.json({**command.fields, "place": client.place, "entry": entry, "add": adding})
    output.line(entry)
    print_error(context.messages("mcp_entry_place", place=client.place))
    if adding:
        print_error(context.messages("mcp_entry_adding", command=adding))
    if args.server is None and home_folder.find_gateway(home) is None:
        print_error(not_running(home))
    return OK


def _list(servers: McpAdmin, output: CommandOutput, context: CommandContext) -> int:
    found = servers.servers()
    if not found and not output.as_json:
        print_error(context.messages("no_mcp_servers"))
    output.items(found)
    if not output.as_json:
        for problem in (problem for one in found for problem in one.problems):
            print_error(one_line(problem, _MAX_COLUMNS))
        for file in _PROJECT_FILES:
            if Path(file).is_file():
                print_error(context.messages("mcp_project_file", file=file))
    return OK


def _add(servers: McpAdmin, args: Namespace, context: CommandContext) -> int:
    """Add a server.

    Raises:
        CliExit: there is neither a command nor a URL, or both; the command cannot start, or the
            answer is no.
    """
    command = list(map(decode_argument, args.rest))
    if bool(command) == bool(args.url):
        raise CliExit(USAGE, _USAGE)
    entry: dict[str, Any] = (
        {"url": args.url} if args.url else {"command": command[0], "args": command[1:]}
    )
    entry |= {
        key: value
        for key, value in (
            ("env", _pairs("env", args.env)),
            ("headers", _pairs("header", args.header)),
            ("network", _network(args.network)),
            ("read_only", args.read),
            ("writable", args.write),
            ("cwd", args.cwd),
            ("risk", args.risk),
            ("login", args.login),
            ("allow_private_networks", args.private),
        )
        if value
    }
    needs = _needs(servers, args.what, entry, context)
    if needs is not None and (needs.download or needs.network):
        question = "mcp_install_and_add" if needs.download else "add_with_network"
        _require_yes(question, args, context, name=args.what)
    prepared = _Prepared(args.what, needs.entry if needs else entry, needs)
    return _add_entry(servers, prepared, context)


def _needs(
    servers: McpAdmin, name: str, entry: Mapping[str, Any], context: CommandContext
) -> McpNeeds | None:
    """Print and return the unmet requirements of a command.

    Raises:
        CliExit: it cannot start.
    """
    needs = servers.needs(name, entry)
    if needs is None:
        return None
    facts = {"name": name, "install": needs.install, "packages": needs.download}
    lines = []
    if needs.is_hopeless:
        lines.append(context.messages("mcp_cannot_start", problem=needs.problem, **facts))
    if needs.reads and not needs.is_hopeless:
        lines.append(context.messages("mcp_reads", paths=", ".join(needs.reads), **facts))
    if needs.download:
        lines.append(context.messages("mcp_downloads", hosts=", ".join(needs.hosts), **facts))
    if needs.network:
        lines.append(context.messages("mcp_network", problem=needs.problem, **facts))
    if needs.install and not needs.download:
        lines.append(context.messages("mcp_install", **facts))
    for line in lines:
        print_error(one_line(line, _MAX_COLUMNS))
    if needs.is_hopeless:
        raise CliExit(FAILED, context.messages("mcp_not_added", name=name))
    return needs


def _add_entry(servers: McpAdmin, prepared: _Prepared, context: CommandContext) -> int:
    """Install and add a server, and start a command to list its tools. Return the exit code."""
    name, entry, needs, is_imported = prepared
    if needs is not None and needs.download:

        def report(seconds: int) -> None:
            if seconds % _PIPE_SECONDS >= _SHOWN_SECONDS and not os.isatty(2):
                return
            key = "mcp_downloading" if seconds else "mcp_downloads_now"
            text = context.messages(key, packages=needs.download, seconds=seconds)
            print_error(one_line(text, _MAX_COLUMNS))

        installed = servers.install(name, entry, report)
        entry = installed.entry
        if installed.failed_scripts:
            print_error(context.messages("mcp_without_scripts", packages=needs.download))
    for sentence in servers.limits(name, entry):
        print_error(one_line(sentence, _MAX_COLUMNS))
    servers.add(name, entry)
    if not entry.get("command"):
        print_error(context.messages("mcp_added", name=name))
        return OK
    try:
        # somebody else may have written the file: without isolation a review comes first
        found = servers.try_isolated(name) if is_imported else servers.test(name)
    except LarkspurError as error:
        print_error(one_line(str(error), _MAX_COLUMNS))
        print_error(context.messages("mcp_added_unstarted", name=name))
        return FAILED
    if found is not None:
        names = ", ".join(tool for tool, *_ in found.tools)
        text = context.messages("mcp_tools", name=name, count=len(found.tools), tools=names)
        print_error(one_line(text, _MAX_COLUMNS))
    print_error(context.messages("mcp_added", name=name))
    return OK


def _pairs(option: str, given: list[str]) -> dict[str, str]:
    """Return repeated options as a mapping.

    Raises:
        CliExit: one has no name or no value.
    """
    separator = _SEPARATORS[option]
    pairs = [text.partition(separator) for text in given]
    if any(not name.strip() or not found for name, found, _ in pairs):
        raise CliExit(USAGE, f"--{option} must be NAME{separator}VALUE.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _network(hosts: list[str]) -> str | list[str]:
    """Return the setting for hosts; `open` and `off` stand alone."""
    return hosts[0] if hosts in (["open"], ["off"], ["registries"]) else hosts


def _import(
    servers: McpAdmin, args: Namespace, context: CommandContext, output: CommandOutput
) -> int:
    """Show the servers of a file, and add them if a person agrees.

    Isolated commands are started once. One that cannot be added is reported, and the others are
    added.

    Raises:
        CliExit: the answer is no; without a terminal there is no answer.
    """
    found = servers.read_file(args.what)
    code = OK
    prepared: list[_Prepared] = []
    for each in found:
        output.line(one_line(f"{each.name}: {each.shown}", _MAX_COLUMNS))
        for note in each.notes:
            output.line(f"  {one_line(note, _MAX_COLUMNS)}")
        if each.problem:
            print_error(one_line(f"{args.what}: {each.name}: {each.problem}", _MAX_COLUMNS))
            code = FAILED
            continue
        try:
            needs = _needs(servers, each.name, each.entry, context)
        except LarkspurError as error:
            print_error(one_line(str(error), _MAX_COLUMNS))
            code = FAILED
        except CliExit as error:
            print_error(str(error))
            code = FAILED
        else:
            completed = needs.entry if needs else each.entry
            prepared.append(_Prepared(each.name, completed, needs, is_imported=True))
    if not prepared:
        return code
    _require_yes("import_mcp", args, context, name=args.what)
    for one in prepared:
        try:
            code = _add_entry(servers, one, context) or code
        except LarkspurError as error:
            print_error(one_line(str(error), _MAX_COLUMNS))
            code = FAILED
    return code


def _log_in(
    servers: McpAdmin, args: Namespace, context: CommandContext, output: CommandOutput
) -> None:
    """Sign in to a server in a browser, which is opened or whose URL is printed."""

    def show(url: str) -> None:
        print_error(context.messages("mcp_sign_in", name=args.what))
        output.line(one_line(url, _MAX_COLUMNS))
        if args.open:
            open_browser(url, home_folder.locate())

    servers.sign_in(args.what, show)
    print_error(context.messages("mcp_signed_in", name=args.what))


def _review(
    servers: McpAdmin, args: Namespace, context: CommandContext, output: CommandOutput
) -> int:
    """Start a server and show it, and for `review` accept it if a person agrees.

    Raises:
        CliExit: the answer is no; without a terminal there is no answer.
    """
    report = servers.test(args.what)
    _show(report, output)
    if args.action == "test":
        return OK
    name = report.item.name
    _require_yes("accept_mcp", args, context, name=name)
    servers.accept(report)
    print_error(context.messages("mcp_accepted", name=name))
    return OK


def _require_yes(question: str, args: Namespace, context: CommandContext, *, name: str) -> None:
    """Ask a person unless `--yes` is given.

    Raises:
        CliExit: the answer is no; without a terminal there is no answer.
    """
    if args.yes:
        return
    if not (os.isatty(0) and os.isatty(2)):
        raise CliExit(WAITING, context.messages("accept_with_yes", name=name))
    if not confirms(context.messages(question, name=name), context, default=False):
        raise CliExit(DENIED)


def _show(report: McpReport, output: CommandOutput) -> None:
    item = report.item
    if output.as_json:
        output.json({**report._asdict(), "item": item._asdict()})
        return
    output.line(f"{item.name}: {item.state}")
    output.line(one_line(item.target, _MAX_COLUMNS))
    for name, text in report.facts:
        output.line(f"{name}: {one_line(text, _MAX_COLUMNS)}")
    output.line(f"sha256 {item.sha256}")
    if not report.is_listed:
        output.line("tools: not known before a test")
    for name, risk, state, description in report.tools:
        output.line(f"- {name} ({risk}, {state})")
        output.line(f"  {one_line(description, _MAX_DESCRIPTION_COLUMNS)}")
    for problem in (*item.problems, *report.problems):
        output.line(f"problem: {one_line(problem, _MAX_COLUMNS)}")
    if report.changes:
        output.line("changes since the review:")
    for line in report.changes:
        output.line(one_line(line, _MAX_COLUMNS))
