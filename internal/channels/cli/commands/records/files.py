"""`larkspur files`: list the files that runs made, save one, and remove unused ones."""

import hashlib
import os
import posixpath
from argparse import Namespace
from collections.abc import AsyncIterable
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from internal.channels.cli.artifact_files import find_local_file
from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import add_gateway, add_json
from internal.channels.cli.exit_codes import FAILED, OK, USAGE, CliExit
from internal.channels.cli.id_lookup import find_artifact, find_session
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.records import ArtifactItem, format_size
from internal.channels.cli.task_request import decode_argument

_LIMIT, _MAX_LIMIT = 50, 500
_TYPES = (
    *("image", "document", "table", "text", "code"),
    *("archive", "audio", "video", "other"),
)
_SHOWN_ON_A_TERMINAL = {"text", "code", "table"}
_USAGE = "Usage: larkspur files [list] | get ID [PATH] | gc [--dry-run]"


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "files",
        description="List the files that runs made, newest first; get ID [PATH] saves one"
        " (PATH: a file, a folder, or - for standard output); gc removes stored files that nothing"
        " uses any more.",
    )
    parser.add_argument(
        "action", nargs="?", choices=("list", "get", "gc"), default="list", help="what to do (list)"
    )
    parser.add_argument(
        "rest",
        nargs="*",
        metavar="ID [PATH]",
        help="the id of a file, or its beginning or end, and where to save the file",
    )
    parser.add_argument(
        "--session", type=decode_argument, metavar="ID", help="only the files of a session"
    )
    parser.add_argument("--type", choices=_TYPES, help="only files of a type")
    parser.add_argument(
        "--search",
        type=decode_argument,
        metavar="TEXT",
        help="only files with this text in their name or caption",
    )
    parser.add_argument("--dry-run", action="store_true", help="only count what gc would remove")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action."""

    async def work(client: GatewayClient) -> int:
        match args.action, args.rest:
            case "list", []:
                return await _list(client, args, context)
            case "get", [written, *path] if len(path) < 2:  # noqa: PLR2004 - one path
                artifact = await find_artifact(client, decode_argument(written))
                if path == ["-"]:
                    return await _print(client, artifact)
                return await _save(client, artifact, path[0] if path else None, args)
            case "gc", []:
                return await _remove_unused(client, args, context)
            case _:
                raise CliExit(USAGE, _USAGE)

    return run_with_records(args, context, work)


async def _list(client: GatewayClient, args: Namespace, context: CommandContext) -> int:
    session_id = None if args.session is None else await find_session(client, args.session)
    wanted = {"session_id": session_id, "type": args.type, "q": args.search}
    found = await client.artifacts(wanted, _MAX_LIMIT if args.json else _LIMIT)
    output = CommandOutput(Output(), args.json)
    if args.json:
        return output.json([{**one._asdict(), "path": _local_path(one)} for one in found])
    if not found:
        print_error(context.messages("no_files"))
    return output.items(found)


async def _save(
    client: GatewayClient, artifact: ArtifactItem, named: str | None, args: Namespace
) -> int:
    place = _choose_path(artifact, named, replaces=args.force)
    async with aclosing(client.artifact_content(artifact.artifact_id)) as content:
        await _save_to(artifact, content, place)
    shown = decode_argument(str(place.path))
    if args.json:
        return CommandOutput(Output(), as_json=True).json({**artifact._asdict(), "path": shown})
    CommandOutput(Output()).line(shown)
    return OK


async def _print(client: GatewayClient, artifact: ArtifactItem) -> int:
    """Write the content to standard output; a terminal shows only text."""
    output = Output()
    if os.isatty(1) and artifact.type not in _SHOWN_ON_A_TERMINAL:
        raise CliExit(USAGE, f"{artifact.name} is no text: name a file instead of -.")
    sent = 0
    async with aclosing(client.artifact_content(artifact.artifact_id)) as content:
        async for piece in content:
            sent += len(piece)
            output.write(piece)
    if sent != artifact.size:
        raise CliExit(FAILED, f"{artifact.name} did not arrive completely; try again.")
    return OK


async def _remove_unused(client: GatewayClient, args: Namespace, context: CommandContext) -> int:
    """Remove the stored files that nothing uses, or only count them."""
    unused = await client.unused_files(removes=not args.dry_run)
    output = CommandOutput(Output(), args.json)
    if args.json:
        return output.json({**unused._asdict(), "removed": not args.dry_run})
    name = "unused_files" if args.dry_run else "unused_files_removed"
    output.line(context.messages(name, count=unused.files, size=format_size(unused.size)))
    return OK


def _local_path(artifact: ArtifactItem) -> str | None:
    return find_local_file(artifact.session_id, artifact.name, artifact.size)


class _Destination(NamedTuple):
    """A place to save a file: `path` is new, or may be replaced if `replaces`."""

    path: Path
    replaces: bool = False


def _choose_path(artifact: ArtifactItem, named: str | None, *, replaces: bool) -> _Destination:
    """Return where to save an artifact: a path, its own name in a folder, or that in this folder.

    Raises:
        CliExit: there is something already that is not replaced, or that is no file.
    """
    own = posixpath.basename(artifact.name)
    own = artifact.artifact_id if own in {"", ".", ".."} else own
    path = Path(named if named is not None else own)
    if path.is_dir():
        path /= own
    shown = decode_argument(str(path))
    if path.is_dir():
        raise CliExit(USAGE, f"{shown} is a folder.")
    if not replaces and os.path.lexists(path):
        raise _exists(path)
    return _Destination(path, replaces)


async def _save_to(artifact: ArtifactItem, content: AsyncIterable[bytes], to: _Destination) -> None:
    """Write the content of an artifact to a file, which appears when it is complete.

    Raises:
        CliExit: the file cannot be written, appeared meanwhile, or the content is not the
            artifact's.
    """
    part = to.path.parent / f".larkspur-{os.urandom(8).hex()}.part"
    digest, size = hashlib.sha256(), 0
    try:
        with part.open("xb") as file:
            async for piece in content:
                digest.update(piece)
                size += len(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if (size, digest.hexdigest()) != (artifact.size, artifact.sha256):
            raise CliExit(FAILED, f"{artifact.name} did not arrive completely; try again.")
        _publish(part, to)
    except OSError as error:
        shown = decode_argument(str(to.path))
        raise CliExit(FAILED, f"{shown} cannot be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)


def _publish(part: Path, to: _Destination) -> None:
    if to.replaces:
        part.replace(to.path)
        return
    try:
        to.path.hardlink_to(part)  # fails if the name is taken, unlike a rename
    except FileExistsError:
        raise _exists(to.path) from None
    except OSError:  # a file system without links
        if os.path.lexists(to.path):
            raise _exists(to.path) from None
        part.rename(to.path)


def _exists(path: Path) -> CliExit:
    return CliExit(USAGE, f"{decode_argument(str(path))} exists; --force replaces it.")
