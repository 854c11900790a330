"""Common parts of the tools that run commands: visible files and time limits."""

import asyncio
import os
import stat
from collections.abc import Sequence
from typing import Annotated

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.configuration_names import PROTECTED_NAMES
from internal.agent.domain.permissions.network import NO_NETWORK
from internal.agent.domain.permissions.outside_paths import OutsideAccess, is_below
from internal.agent.domain.permissions.paths import normalize_path
from internal.agent.domain.permissions.targets import NetworkTarget, OutsidePathTarget
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.ports.attachments import INPUT_VARIABLE, OUTPUT_VARIABLE
from internal.agent.ports.sandbox import FileAccess, SandboxCommand
from internal.agent.ports.tools import ToolOutcome
from internal.tools.commands.command_end import describe_end
from internal.tools.commands.command_watch import CommandWatch
from internal.tools.commands.configuration_files import (
    configuration_metadata,
    describe_changes,
    log_changes,
)
from internal.tools.commands.git_folders import ADVICE, is_kept_from_git
from internal.tools.commands.terminal_output import TerminalOutput
from internal.tools.tool import ToolContext
from internal.tools.workspace import Workspace

MAX_TIMEOUT_SECONDS = 600
_MAX_HOSTS, _MAX_PATHS = 32, 16

# What a call needs beyond the folders of its session: judged before the call, see CallContext.
Hosts = Annotated[
    list[str],
    msgspec.Meta(max_length=_MAX_HOSTS),
    "Hosts that it must reach besides those that isolated commands may: example.com,"
    " example.com:8443, or * for all. A person is asked.",
]
ReadPaths = Annotated[
    list[str],
    msgspec.Meta(max_length=_MAX_PATHS),
    "Absolute paths outside of the workspace that it must read. A person is asked.",
]
WritePaths = Annotated[
    list[str],
    msgspec.Meta(max_length=_MAX_PATHS),
    "The same for existing files and folders that it must change.",
]
ACCESS_TARGETS = (
    NetworkTarget("network"),
    OutsidePathTarget("read_paths"),
    OutsidePathTarget("write_paths", writable=True),
)
KILL_GRACE_SECONDS = 30.0
"""Time that a call may take beyond its timeout."""


def session_command(
    context: ToolContext, argv: tuple[str, ...], seconds: float, stdin: bytes = b""
) -> SandboxCommand:
    """Return a command of a session: it sees the workspace and the folders of the session."""
    folders = context.workspace.folders
    variables = (
        {} if folders is None else {INPUT_VARIABLE: folders.input, OUTPUT_VARIABLE: folders.output}
    )
    return SandboxCommand(
        argv,
        cwd=context.workspace.root,
        timeout_seconds=seconds,
        session_id=context.call.session_id,
        stdin=stdin,
        environment=variables,
        access=_access(context.workspace, context.call.outside),
        network=context.call.network if context.sandbox.capabilities.hosts else NO_NETWORK,
    )


def session_watch(context: ToolContext, command: SandboxCommand) -> CommandWatch:
    """Return the watch of a command of a session.

    The repositories in a folder that belongs to the session, such as a subtask's worktree, are the
    agent's own: commands may configure them.
    """
    people = context.call.outside.writable
    if not context.workspace.belongs_to_session:
        people = (context.workspace.root, *people)
    protects = context.sandbox.capabilities.protects
    return CommandWatch(context.background.watched, command, people, protects=protects)


async def check_access(
    context: ToolContext,
    network: Sequence[str] = (),
    read_paths: Sequence[str] = (),
    write_paths: Sequence[str] = (),
    **_others: object,
) -> str:
    """Check that a command can get the hosts and the paths outside that it asks for.

    This is also the preview of such a call, so that nobody is asked about one that would fail.

    Returns:
        "": a command has no preview.

    Raises:
        ToolError: it cannot.
    """
    able = context.sandbox.capabilities
    if able.isolated:
        for path in (*read_paths, *write_paths):
            await asyncio.to_thread(_check_path, context.workspace, path)
    if network and able.isolated and not able.hosts:
        raise ToolError(
            "commands have no network in the sandbox of this machine"
            f" ({context.sandbox.provider}); call the tool without `network`"
        )
    return ""


async def run_session_command(
    context: ToolContext, argv: tuple[str, ...], seconds: int, stdin: bytes = b""
) -> ToolOutcome:
    """Run a command of a session to its end; its output is shown live.

    Raises:
        ToolError: it cannot be started.
    """
    output = TerminalOutput()

    def write(chunk: bytes) -> None:
        context.call.progress(output.write(chunk))

    watch = session_watch(context, session_command(context, argv, float(seconds), stdin))
    try:
        async with watch:
            finished = await context.sandbox.run(watch.command, write)
    except BaseException:  # nobody gets a result that could name them
        log_changes(watch.changed, context.call)
        raise
    text = output.text().rstrip("\n")
    advice = ADVICE if watch.protects and is_kept_from_git(text) else ""
    changes = describe_changes(watch.changed)
    end = "\n".join(filter(None, (describe_end(finished, seconds), advice, changes)))
    return ToolOutcome(
        f"{text}\n{end}" if text else end,
        metadata={
            "exit_code": finished.exit_code,
            "timed_out": finished.timed_out,
            "isolated": context.sandbox.capabilities.isolated,
            **configuration_metadata(watch.changed),
        },
    )


def _check_path(workspace: Workspace, path: str) -> None:
    """Check that a path outside of the workspace may be seen, and passes no link.

    Raises:
        ToolError: it does not exist, leads elsewhere, or may not be seen.
    """
    normal = normalize_path(path)
    try:
        real = os.path.realpath(normal, strict=True)
        mode = os.lstat(real).st_mode
    except OSError as error:
        raise ToolError(f"{path}: {describe_system_error(error)}") from error
    if real != normal:
        raise ToolError(f"{path} leads to {real}: name that path")
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise ToolError(f"{path} is neither a file nor a folder")
    if is_below(real, os.path.realpath(workspace.root)):
        raise ToolError(f"{path} is in the workspace: commands see it")
    if workspace.is_protected(real):
        raise ToolError(f"{path} belongs to Larkspur: commands cannot see it")


def _access(workspace: Workspace, outside: OutsideAccess) -> FileAccess:
    """Return the files that a command sees. Configuration of agents and programs is read-only."""
    writable, read_only = (workspace.root, *outside.writable), outside.read_only
    if workspace.folders is not None:
        read_only = (*read_only, workspace.folders.input, *workspace.folders.read_only)
    folders = (workspace.root, *outside.writable)
    protected = (f"{folder}/{name}" for folder in folders for name in PROTECTED_NAMES)
    return FileAccess(writable, (*read_only, *protected))
