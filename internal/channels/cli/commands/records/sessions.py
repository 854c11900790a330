"""`larkspur sessions`: list, show, export, delete and rename sessions."""

import json
import os
from argparse import Namespace
from collections.abc import Awaitable, Callable

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import add_gateway, add_json
from internal.channels.cli.exit_codes import FAILED, OK, USAGE, CliExit
from internal.channels.cli.id_lookup import find_session
from internal.channels.cli.output import Output
from internal.channels.cli.render.transcript import transcript_markdown
from internal.channels.cli.task_request import decode_argument
from internal.normal_forms.time_zones import format_moment

_LIMIT, _MAX_LIMIT = 50, 500
_USAGE = (
    "Usage: larkspur sessions [list] | show ID | export ID [FILE] | rm ID … | rename ID TITLE"
    " | move ID --to-host NAME | move ID --any-host"
)


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "sessions",
        description="List sessions; show ID, export ID [FILE], rm ID …, rename ID TITLE, move ID.",
    )
    actions = ("list", "show", "export", "rm", "rename", "move")
    parser.add_argument(
        "action", nargs="?", choices=actions, default="list", help="what to do (list)"
    )
    parser.add_argument(
        "rest",
        nargs="*",
        type=decode_argument,
        metavar="ID …",
        help="session, task or run ids, or the beginning of one",
    )
    parser.add_argument(
        "--recording",
        action="store_true",
        help="export a recording, which the demo model can replay (llm.recording)",
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--to-host", metavar="NAME", help="move: this host executes the next tasks of the session"
    )
    place.add_argument("--any-host", action="store_true", help="move: any host executes them")
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action."""
    output = CommandOutput(Output(), args.json)
    show = _show_recording if args.recording else _show

    async def work(client: GatewayClient) -> int:
        match args.action, args.rest:
            case "list", []:
                return output.items(await client.sessions(_MAX_LIMIT if args.json else _LIMIT))
            case (("show" | "export"), [written]):
                return await show(client, written, output)
            case "export", [written, path]:
                return await _export(client, written, path, show, as_json=args.json)
            case "rm", [_, *_]:
                for session_id in [await find_session(client, one) for one in args.rest]:
                    await client.remove(session_id)
                    output.line(session_id)
                return OK
            case "rename", [written, title]:
                await client.rename(await find_session(client, written), title)
                return OK
            case "move", [written] if args.any_host or args.to_host:
                return await _move(client, written, args.to_host or "", output)
            case _:
                raise CliExit(USAGE, _USAGE)

    return run_with_records(args, context, work)


async def _move(client: GatewayClient, written: str, host: str, output: CommandOutput) -> int:
    """Move a session to a host, "" for any, and print the effect on its files."""
    session_id = await find_session(client, written)
    moved = await client.move(session_id, host)
    if output.as_json:
        return output.json({"session_id": session_id, "host": host, **moved._asdict()})
    place = f"host {host}" if host else "any host"
    output.line(f"The next task of {session_id} is executed by {place}.")
    if moved.saved:
        saved = format_moment(moved.saved)
        output.line(f"It has the files of the archive of {saved}; later changes are not in it.")
    elif moved.previous:
        output.line(f"The files of the session stay on host {moved.previous}; it starts without.")
    return OK


async def _show(client: GatewayClient, written: str, output: CommandOutput) -> int:
    """Print the messages of a session as Markdown or JSON."""
    session_id = await find_session(client, written)
    messages = await client.transcript(session_id)
    if output.as_json:
        return output.json([one._asdict() for one in messages])
    output.stream.write(transcript_markdown(messages, session_id).encode())
    return OK


async def _show_recording(client: GatewayClient, written: str, output: CommandOutput) -> int:
    """Print the requests of a session and the replies of the model, a JSON object per line."""
    run_id = None
    for message in await client.messages(await find_session(client, written)):
        parts = message["parts"]
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        if message["role"] == "assistant":
            calls = [
                {"name": part["name"], "arguments": part["arguments"]}
                for part in parts
                if part["type"] == "tool_call"
            ]
            line = {"type": "reply", "text": text, "calls": calls}
            output.line(json.dumps(line, ensure_ascii=False))
        elif message["run_id"] != run_id:
            output.line(json.dumps({"type": "request", "text": text}, ensure_ascii=False))
        run_id = message["run_id"]
    return OK


async def _export(
    client: GatewayClient,
    written: str,
    path: str,
    show: Callable[[GatewayClient, str, CommandOutput], Awaitable[int]],
    *,
    as_json: bool,
) -> int:
    """Write the output of `show` for a session to a new file."""
    session_id = await find_session(client, written)
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise CliExit(FAILED, f"{path} cannot be written: {error.strerror}.") from None
    try:
        return await show(client, session_id, CommandOutput(Output(file), as_json))
    finally:
        os.close(file)
