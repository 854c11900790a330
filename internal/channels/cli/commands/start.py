"""`larkspur` and `larkspur -p`: a session in the terminal, or one task. Standard library only."""

import sys
from argparse import Namespace
from importlib import import_module
from typing import Any

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.commands.confirmation import confirmed_folder
from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.commands.gateway import run_with_agent
from internal.channels.cli.exit_codes import BROKEN_PIPE, USAGE, CliExit
from internal.channels.cli.headless.runner import (
    RECONNECT_SECONDS,
    HeadlessRunner,
    OneShot,
    newest_sessions,
)
from internal.channels.cli.input_files import check_files
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.records import TaskRequest
from internal.channels.cli.task_request import compose_task, read_stdin
from internal.normal_forms.time_zones import format_minute

_OPTIONS = (
    *("permission_mode", "allow", "deny", "plan_review", "network"),
    *("model", "max_iterations", "max_cost", "timeout_seconds"),
)


def run(args: Namespace, context: CommandContext) -> int:
    """Start a session, or run one task; return the exit code.

    Raises:
        CliExit: the arguments cannot be used, or the task fails.
    """
    if args.schema is not None and (args.shot is None or args.detach):
        raise CliExit(USAGE, "--json-schema needs -p, and cannot be combined with --detach.")
    is_stream = args.input_format == "stream-json"
    if is_stream and (args.shot is None or args.output_format != "stream-json"):
        raise CliExit(USAGE, "--input-format stream-json needs -p and --output-format stream-json.")
    if is_stream and (args.schema is not None or args.detach):
        raise CliExit(
            USAGE, "--input-format stream-json cannot be combined with --json-schema or --detach."
        )
    if args.shot is None:
        # not imported for one-shot tasks, which do not need prompt_toolkit
        session: Any = import_module("internal.channels.cli.commands.session")
        code: int = session.run_repl(args, context)
        return code
    shot = _one_shot(args, context)

    async def work(client: GatewayClient) -> int:
        if shot is None:
            return await _list_sessions(client)
        if is_stream:
            stream: Any = import_module("internal.channels.cli.headless.stream_runner")
            code: int = await stream.StreamRunner(client).run_stream(shot)
            return code
        return await HeadlessRunner(client, Output()).run(shot)

    return run_with_agent(
        args, context, work, retry_seconds=RECONNECT_SECONDS, needs_gateway=args.detach
    )


def _one_shot(args: Namespace, context: CommandContext) -> OneShot | None:
    """Return the task with standard input and files; None to list the sessions instead.

    Raises:
        CliExit: there is no task, an input cannot be read, or the working folder is not confirmed.
    """
    if sys.stdout is None:
        raise CliExit(BROKEN_PIPE)
    if args.resume == "":
        return None
    if args.shot and args.prompt:
        raise CliExit(USAGE, f"Quote the whole prompt: {args.prompt} is a second argument.")
    options = {name: getattr(args, name) for name in _OPTIONS}
    request = TaskRequest(
        task=_read_task(args),
        options={
            "workspace": confirmed_folder(args, context),
            # without the gateway nobody can approve calls
            "approvals": args.detach or args.input_format == "stream-json",
            **{name: value for name, value in options.items() if value},
        },
        session_id=args.resume,
        profile=args.profile,
        files=check_files(args.files),
    )
    return OneShot(
        request,
        output_format=args.output_format,
        continue_last=args.last,
        title=args.session_name,
        detach=args.detach,
        schema=None if args.schema is None else _read_schema(args.schema),
    )


def _read_task(args: Namespace) -> str:
    prompt: str = args.shot or args.prompt or ""
    return prompt if args.input_format == "stream-json" else compose_task(prompt, read_stdin())


def _read_schema(path: str) -> Any:
    # not imported for other tasks: the library takes longer than the rest of the command
    schemas: Any = import_module("internal.channels.cli.headless.answer_schema")
    return schemas.read_schema(path)


async def _list_sessions(client: GatewayClient) -> int:
    """List the newest sessions for `-r` without an id, which is a usage error."""
    for session in await newest_sessions(client):
        print_error(f"{session.session_id}  {format_minute(session.updated)}  {session.title}")
    raise CliExit(
        USAGE, 'Name a session: larkspur -r ID -p "…". The newest is first; -c continues it.'
    )
