"""The shell tool: run a command in the sandbox."""

import shutil
from collections.abc import Sequence
from typing import Annotated

import msgspec

from internal.agent.domain.permissions.paths import CONFIGURATION_NAMES
from internal.agent.domain.permissions.targets import CommandTarget, NetworkTarget
from internal.agent.ports.attachments import INPUT_VARIABLE, OUTPUT_VARIABLE, FileFolders
from internal.agent.ports.sandbox import FileAccess, Resource, SandboxCommand
from internal.agent.ports.tools import ToolOutcome
from internal.tools.tool import OutputBuffer, ToolContext, tool
from internal.tools.workspace import Workspace

MAX_TIMEOUT_SECONDS = 600
_MAX_LIVE_CHARS = 200_000  # beyond that no more output is shown live
_MAX_HOSTS = 32
_KILL_GRACE_SECONDS = 30.0
_EXCEEDED: dict[Resource, str] = {
    "memory": "[the command used more memory than it may]",
    "processes": "[the command started more processes than it may]",
    "output": "[ended: the command wrote more output than it may]",
}


@tool(
    risk="exec",
    targets=(CommandTarget("command"), NetworkTarget("network")),
    title={"en": "Run a command", "zh": "执行命令"},
    timeout_seconds=MAX_TIMEOUT_SECONDS + _KILL_GRACE_SECONDS,
    sandboxed=True,
)
async def shell(
    context: ToolContext,
    command: Annotated[str, msgspec.Meta(min_length=1), "A command line for bash."],
    timeout_seconds: Annotated[
        int, msgspec.Meta(ge=1, le=MAX_TIMEOUT_SECONDS), "End the command after this many seconds."
    ] = 120,
    network: Annotated[  # noqa: ARG001  # judged before the call; see CallContext.network
        list[str],
        msgspec.Meta(max_length=_MAX_HOSTS),
        "Hosts that an isolated command must reach besides those it may: example.com,"
        " example.com:8443, or * for all. A person is asked.",
    ] = [],  # noqa: B006  # never changed
) -> ToolOutcome:
    """Run a shell command in the workspace and return its output and exit code.

    Every call is a fresh shell: no variable, folder or background process is kept. Nothing can be
    typed into it. Long output keeps its head and its tail.
    """
    output = OutputBuffer()
    live = 0

    def write(chunk: bytes) -> None:
        nonlocal live
        text = output.write(chunk)
        if live < _MAX_LIVE_CHARS and text:
            context.call.progress(text[: _MAX_LIVE_CHARS - live])
            live += len(text)

    finished = await context.sandbox.run(
        SandboxCommand(
            (*_shell(), command),
            cwd=context.workspace.root,
            timeout_seconds=float(timeout_seconds),
            session_id=context.call.session_id,
            environment=_folder_variables(context.workspace.folders),
            access=_access(context.workspace),
            network=context.call.network,
        ),
        write,
    )
    end = f"[exit code {finished.exit_code}]"
    if finished.timed_out:
        end = f"[ended after {timeout_seconds} s with all it had started]"
    elif finished.exceeded is not None:
        end = f"{_EXCEEDED[finished.exceeded]}\n{end}"
    if finished.refused:
        end = f"{_refusal(finished.refused)}\n{end}"
    text = output.text().rstrip("\n")
    return ToolOutcome(
        f"{text}\n{end}" if text else end,
        metadata={
            "exit_code": finished.exit_code,
            "timed_out": finished.timed_out,
            "isolated": context.sandbox.isolated,
        },
    )


def _refusal(refused: Sequence[str]) -> str:
    return f"[no network to {', '.join(refused)}: name the hosts in `network` to ask for them]"


def _access(workspace: Workspace) -> FileAccess:
    """Return the files that a command sees: the workspace and the folders of the session."""
    protected = tuple(f"{workspace.root}/{name}" for name in CONFIGURATION_NAMES)
    if workspace.folders is None:
        return FileAccess((workspace.root,), protected)
    return FileAccess(
        (workspace.root, workspace.folders.output), (workspace.folders.input, *protected)
    )


def _folder_variables(folders: FileFolders | None) -> dict[str, str]:
    if folders is None:
        return {}
    return {INPUT_VARIABLE: folders.input, OUTPUT_VARIABLE: folders.output}


def _shell() -> tuple[str, ...]:
    """Return bash, whose syntax the permission rules parse, or sh if bash is missing."""
    bash = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin")
    # --norc: bash reads ~/.bashrc when standard input is a socket
    return (bash, "--noprofile", "--norc", "-c") if bash else ("/bin/sh", "-c")
