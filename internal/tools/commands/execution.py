"""What the tools that run commands share: what a command sees, and how long it may take."""

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.network import NO_NETWORK
from internal.agent.domain.permissions.paths import CONFIGURATION_NAMES
from internal.agent.ports.attachments import INPUT_VARIABLE, OUTPUT_VARIABLE
from internal.agent.ports.sandbox import FileAccess, SandboxCommand
from internal.agent.ports.tools import ToolOutcome
from internal.tools.commands.command_end import describe_end
from internal.tools.tool import OutputBuffer, ToolContext
from internal.tools.workspace import Workspace

MAX_TIMEOUT_SECONDS = 600
MAX_HOSTS = 32
NETWORK_DESCRIPTION = (
    "Hosts that it must reach besides those that isolated commands may: example.com,"
    " example.com:8443, or * for all. A person is asked."
)
_MAX_LIVE_CHARS = 200_000  # beyond that no more output is shown live
KILL_GRACE_SECONDS = 30.0
"""What a call may take beyond its timeout."""


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
        access=_access(context.workspace),
        network=context.call.network if context.sandbox.capabilities.hosts else NO_NETWORK,
    )


def check_hosts(context: ToolContext, network: list[str]) -> None:
    """Check that the sandbox can let a command reach the hosts that it asks for.

    Raises:
        ToolError: it cannot.
    """
    able = context.sandbox.capabilities
    if network and able.isolated and not able.hosts:
        raise ToolError(
            "commands have no network in the sandbox of this machine"
            f" ({context.sandbox.provider}); call the tool without `network`"
        )


async def run_session_command(
    context: ToolContext, argv: tuple[str, ...], seconds: int, stdin: bytes = b""
) -> ToolOutcome:
    """Run a command of a session to its end; its output is shown live.

    Raises:
        ToolError: it cannot be started.
    """
    output = OutputBuffer()
    live = 0

    def write(chunk: bytes) -> None:
        nonlocal live
        text = output.write(chunk)
        if live < _MAX_LIVE_CHARS and text:
            context.call.progress(text[: _MAX_LIVE_CHARS - live])
            live += len(text)

    running = session_command(context, argv, float(seconds), stdin)
    finished = await context.sandbox.run(running, write)
    end = describe_end(finished, seconds)
    text = output.text().rstrip("\n")
    return ToolOutcome(
        f"{text}\n{end}" if text else end,
        metadata={
            "exit_code": finished.exit_code,
            "timed_out": finished.timed_out,
            "isolated": context.sandbox.capabilities.isolated,
        },
    )


def _access(workspace: Workspace) -> FileAccess:
    protected = tuple(f"{workspace.root}/{name}" for name in CONFIGURATION_NAMES)
    if workspace.folders is None:
        return FileAccess((workspace.root,), protected)
    return FileAccess(
        (workspace.root, workspace.folders.output), (workspace.folders.input, *protected)
    )
