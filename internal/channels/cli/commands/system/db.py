"""`larkspur db`: status, migrations, space, copies, retention and moves of the database."""

from argparse import Namespace
from pathlib import Path

from internal.agent.domain.text import format_size
from internal.agent.ports.maintenance.reports import DatabaseStatus, Pruned
from internal.agent.ports.runtime import ProcessIdentity
from internal.channels.cli.application import DatabaseAdmin
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, add_json
from internal.channels.cli.exit_codes import CONFIG, OK, USAGE, CliExit
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.task_request import decode_argument

_ACTIONS = ("status", "migrate", "vacuum", "backup", "export", "prune", "move")
_USAGE = (
    "Usage: larkspur db [status] | migrate [--check] | vacuum | backup FILE | export FILE"
    " | prune [--dry-run] | move --to URL | move --cancel"
)
_OPTIONS = {"check": "migrate", "dry_run": "prune", "to": "move", "cancel": "move"}


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "db",
        description="Show the database, migrate its schema, give unused space back, copy it,"
        " remove what is old, and move it to another database.",
        epilog=_USAGE,
    )
    parser.add_argument("action", nargs="?", choices=_ACTIONS, default="status", help="what to do")
    parser.add_argument("file", nargs="?", type=decode_argument, help="new file of a copy")
    parser.add_argument("--check", action="store_true", help="migrate: only list what is pending")
    parser.add_argument("--dry-run", action="store_true", help="prune: only count what is old")
    parser.add_argument(
        "--to", type=decode_argument, metavar="URL", help="move: postgresql://… or sqlite:///PATH"
    )
    parser.add_argument(
        "--cancel", action="store_true", help="move: use the database again that was moved"
    )
    add_json(parser)
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action.

    Raises:
        CliExit: the arguments do not fit the action.
    """
    needs_file = args.action in {"backup", "export"}
    given = {action for name, action in _OPTIONS.items() if getattr(args, name)}
    is_ambiguous = args.action == "move" and bool(args.to) is args.cancel
    if needs_file is (args.file is None) or given - {args.action} or is_ambiguous:
        raise CliExit(USAGE, _USAGE)
    output = CommandOutput(Output(), args.json)
    admin = context.application().database(args.config)
    match args.action:
        case "status":
            code = _status(admin, output)
        case "migrate":
            code = _migrate(admin, output, only_check=args.check)
        case "vacuum":
            code = _done(admin.vacuum(), output)
        case "backup":
            code = _done(admin.back_up(Path(args.file)), output)
        case "export":
            code = _done(admin.export(Path(args.file)), output)
        case "prune":
            code = _prune(admin, output, dry_run=args.dry_run)
        case _:
            code = _cancel(admin, output) if args.cancel else _move(admin, output, args.to)
    return code


def _done(sentence: str, output: CommandOutput) -> int:
    if output.as_json:
        return output.json({"result": sentence})
    output.line(sentence)
    return OK


def _status(admin: DatabaseAdmin, output: CommandOutput) -> int:
    status = admin.status()
    if output.as_json:
        lists = {key: [row._asdict() for row in getattr(status, key)] for key in ("tables", "old")}
        return output.json({**status._asdict(), **lists})
    output.rows(_facts(status))
    output.line("")
    sizes = [(each.name, f"{each.rows:,}", _size(each.size)) for each in status.tables if each.rows]
    output.rows([("table", "rows", "size"), *sizes])
    if any(each.total for each in status.old):
        output.line("")
        output.rows([_pruned_cells(each) for each in status.old])
        output.line("larkspur db prune removes what is old; the gateway does it once a day.")
    if status.note:
        output.line("")
        output.line(status.note)
    return OK


def _pruned_cells(pruned: Pruned) -> tuple[str, str, str]:
    return pruned.kind, f"older than {pruned.days} days", f"{pruned.total:,}"


def _facts(status: DatabaseStatus) -> list[tuple[str, str]]:
    schema = f"{status.schema}"
    if status.schema != status.supported:
        schema += f" (this version has {status.supported}: larkspur db migrate)"
    events = f"{status.oldest_event} to {status.newest_event}" if status.oldest_event else "none"
    runs = ", ".join(f"{count:,} {name}" for name, count in status.runs.items())
    return [
        ("database", status.place),
        ("schema", schema),
        *_sizes(status),
        ("events", events),
        ("runs", runs or "none"),
        *(("process", _process(owner)) for owner in status.processes),
    ]


def _process(owner: str) -> str:
    process = ProcessIdentity.parse(owner)
    return owner if process is None else f"{process.name}, process {process.pid} on {process.host}"


def _sizes(status: DatabaseStatus) -> list[tuple[str, str]]:
    if status.kind == "postgresql":  # it has no log of its own and does not tell what is unused
        return [("size", format_size(status.size))]
    unused = f"{format_size(status.unused)} of it unused"
    return [
        ("size", f"{format_size(status.size)}, {unused}"),
        ("log", format_size(status.wal_size)),
    ]


def _size(size: int | None) -> str:
    return "-" if size is None else format_size(size)


def _migrate(admin: DatabaseAdmin, output: CommandOutput, *, only_check: bool) -> int:
    pending = admin.pending()
    if not only_check:
        admin.migrate(lambda step: print_error(f"applied {step}"))
    if output.as_json:
        output.json({"pending" if only_check else "applied": pending})
    elif not pending:
        output.line("No migration is pending.")
    elif only_check:
        output.line(f"Pending: {', '.join(pending)}. Apply with larkspur db migrate.")
    else:
        output.line(f"{len(pending)} migrations were applied.")
    return CONFIG if only_check and pending else OK


def _prune(admin: DatabaseAdmin, output: CommandOutput, *, dry_run: bool) -> int:
    pruned = admin.prune(dry_run=dry_run)
    if output.as_json:
        return output.json([each._asdict() for each in pruned])
    if not pruned:
        output.line("Nothing is removed because of its age: see retention in the settings.")
        return OK
    output.rows([_pruned_cells(each) for each in pruned])
    output.line("Nothing was removed (--dry-run)." if dry_run else "This was removed.")
    return OK


def _move(admin: DatabaseAdmin, output: CommandOutput, url: str) -> int:
    result = admin.move(url, print_error)
    if output.as_json:
        return output.json(result._asdict())
    done = "were moved before" if result.was_finished else "were moved and compared"
    output.line(f"{result.rows:,} rows {done}: {result.source} to {result.target}")
    output.line(
        "Now set database.url to the new place (docs/database.md) and start Larkspur. The old"
        " database is kept and is not opened any more; delete it when you no longer need it."
    )
    return OK


def _cancel(admin: DatabaseAdmin, output: CommandOutput) -> int:
    was_moved = admin.cancel_move()
    return _done(
        "The database can be used again." if was_moved else "The database was not moved.", output
    )
