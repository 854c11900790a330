"""What the tools that run commands share: what a command sees, and how long it may take."""

from internal.agent.domain.permissions.paths import CONFIGURATION_NAMES
from internal.agent.ports.attachments import INPUT_VARIABLE, OUTPUT_VARIABLE
from internal.agent.ports.sandbox import FileAccess, SandboxCommand
from internal.tools.tool import ToolContext
from internal.tools.workspace import Workspace

MAX_TIMEOUT_SECONDS = 600
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
        network=context.call.network,
    )


def _access(workspace: Workspace) -> FileAccess:
    protected = tuple(f"{workspace.root}/{name}" for name in CONFIGURATION_NAMES)
    if workspace.folders is None:
        return FileAccess((workspace.root,), protected)
    return FileAccess(
        (workspace.root, workspace.folders.output), (workspace.folders.input, *protected)
    )
