"""The shell tool: run a command line in the sandbox."""

import shutil
from typing import Annotated

import msgspec
from msgspec import structs

from internal.agent.domain.permissions.targets import CommandTarget
from internal.agent.ports.sandbox import SandboxCommand
from internal.agent.ports.tools import ToolOutcome
from internal.terminal_screen.screen import screen_text
from internal.tools.commands.background import MAX_SECONDS
from internal.tools.commands.configuration_files import configuration_metadata
from internal.tools.commands.execution import (
    ACCESS_TARGETS,
    KILL_GRACE_SECONDS,
    MAX_TIMEOUT_SECONDS,
    Hosts,
    ReadPaths,
    WritePaths,
    check_access,
    run_session_command,
    session_command,
    session_watch,
)
from internal.tools.tool import ToolContext, tool

_FIRST_OUTPUT_SECONDS = 0.5  # how long a background call waits for an early failure


@tool(
    risk="exec",
    targets=(CommandTarget("command"), *ACCESS_TARGETS),
    title={"en": "Run a command", "zh": "执行命令"},
    timeout_seconds=MAX_TIMEOUT_SECONDS + KILL_GRACE_SECONDS,
    sandboxed=True,
    preview=check_access,
)
async def shell(  # noqa: PLR0917  # the arguments of the model
    context: ToolContext,
    command: Annotated[str, msgspec.Meta(min_length=1), "A command line for bash."],
    timeout_seconds: Annotated[
        int, msgspec.Meta(ge=1, le=MAX_TIMEOUT_SECONDS), "End the command after this many seconds."
    ] = 120,
    network: Hosts = [],  # noqa: B006  # never changed
    read_paths: ReadPaths = [],  # noqa: B006  # never changed
    write_paths: WritePaths = [],  # noqa: B006  # never changed
    background: Annotated[
        bool, "Return at once with an id; read the output with shell_output."
    ] = False,
    keep: Annotated[
        bool, "Let a background command run on when this task has ended, for a day at most."
    ] = False,
) -> ToolOutcome:
    """Run a shell command in the workspace and return its output and exit code.

    Every call is a fresh shell: no variable or folder is kept. Nothing can be typed into it. Long
    output keeps its head and its tail. A background command ends with the task.
    """
    await check_access(context, network, read_paths, write_paths)
    argv = (*_shell(), command)
    if background:
        started = structs.replace(session_command(context, argv, MAX_SECONDS), serves=True)
        return await _start(context, started, command, keep=keep)
    return await run_session_command(context, argv, timeout_seconds)


async def _start(
    context: ToolContext, command: SandboxCommand, line: str, *, keep: bool
) -> ToolOutcome:
    """Start a background command; its first output is part of the result."""
    pool, call = context.background, context.call
    watch = session_watch(context, command)
    new_id = pool.start(context.sandbox, watch, call, shown=line, kept=keep)
    first = await pool.read(call.session_id, new_id, 0, _FIRST_OUTPUT_SECONDS)
    end = first.end or f"[{new_id} runs in the background; read on with since={first.next}]"
    return ToolOutcome(
        "\n".join(filter(None, (screen_text(first.text).rstrip("\n"), end))),
        metadata={
            "background": new_id,
            "isolated": context.sandbox.capabilities.isolated,
            **configuration_metadata(first.configuration),
        },
    )


def _shell() -> tuple[str, ...]:
    """Return bash, whose syntax the permission rules parse, or sh if bash is missing."""
    bash = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin")
    # --norc: bash reads ~/.bashrc when standard input is a socket
    return (bash, "--noprofile", "--norc", "-c") if bash else ("/bin/sh", "-c")
