"""`larkspur watch`: show a task until it ends."""

import json
import shutil
from argparse import Namespace
from contextlib import aclosing
from functools import partial

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import TASK_ID_HELP, add_gateway, add_json
from internal.channels.cli.exit_codes import FAILED, OK
from internal.channels.cli.id_lookup import find_task
from internal.channels.cli.output import Output
from internal.channels.cli.records import StreamBatch
from internal.channels.cli.render.text import plain_text
from internal.channels.cli.render.theme import UNICODE
from internal.channels.cli.repl.view import TranscriptView
from internal.channels.cli.task_request import decode_argument
from internal.i18n.catalog import MessageCatalog

_LAST_EVENTS = frozenset({"workflow.result.final", "workflow.result.cancelled"})


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "watch", description="Show a task from its beginning until it ends. Ctrl+C leaves it alone."
    )
    parser.add_argument("id", type=decode_argument, metavar="ID", help=TASK_ID_HELP)
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Show the task; the exit code is its outcome."""
    view = TranscriptView(MessageCatalog("repl", context.language), UNICODE)
    width, output = shutil.get_terminal_size((100, 24)).columns, Output()

    def take(batch: StreamBatch, task_id: str, run_id: str) -> tuple[bytes, bool]:
        """Return the output to print, and whether the task has ended.

        The output of the outermost task includes its subtasks.
        """
        lines, ended = b"", False
        for envelope in batch.envelopes:
            event = json.loads(envelope)
            is_own = event.get("task_id") == task_id
            if not is_own and event.get("correlation_id") != run_id:
                continue
            ended |= is_own and event["event"] in _LAST_EVENTS
            if args.json:
                lines += b'{"event":%s}\n' % envelope
            else:
                view.add_event(json.dumps({**event, "is_subtask": not is_own}).encode())
        final, _ = view.take_rows(width)
        return lines + "".join(f"{plain_text(row).rstrip()}\n" for row in final).encode(), ended

    async def work(client: GatewayClient) -> int:
        task = await find_task(client, args.id)
        run_id = (await client.task(task.task_id)).run_id
        async with aclosing(client.watch(task.session_id)) as batches:
            async for batch in batches:
                text, ended = take(batch, task.task_id, run_id)
                if text:
                    await client.transport.run_blocking(partial(output.write, text))
                if ended:
                    break
        return OK if (await client.task(task.task_id)).item.status == "completed" else FAILED

    return run_with_records(args, context, work)
