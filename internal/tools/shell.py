"""The tool that runs a shell command, through the sandbox."""

import shutil
from typing import Annotated

import msgspec

from internal.agent.domain.permissions.targets import CommandTarget
from internal.agent.ports.sandbox import SandboxCommand
from internal.agent.ports.tools import ToolOutcome
from internal.tools.output_limit import OutputBuffer
from internal.tools.tool import ToolContext, tool

MAX_SECONDS = 600
_LIVE_CHARACTERS = 200_000  # of a flood no more is shown live; the result keeps its head and tail
_ENDING_SECONDS = 30.0


@tool(
    risk="exec",
    targets=(CommandTarget("command"),),
    title={"en": "Run a command", "zh": "执行命令"},
    timeout_seconds=MAX_SECONDS + _ENDING_SECONDS,
)
async def shell(
    context: ToolContext,
    command: Annotated[str, msgspec.Meta(min_length=1), "A command line for bash."],
    timeout_seconds: Annotated[
        int, msgspec.Meta(ge=1, le=MAX_SECONDS), "End the command after this many seconds."
    ] = 120,
) -> ToolOutcome:
    """Run a shell command in the workspace and return its output and exit code.

    Every call is a fresh shell: no variable, folder or background process is kept. Nothing can be
    typed into it. Long output keeps its head and its tail.
    """
    clip = OutputBuffer()
    live = 0

    def take(chunk: bytes) -> None:
        nonlocal live
        text = clip.take(chunk)
        if live < _LIVE_CHARACTERS and text:
            context.call.progress(text[: _LIVE_CHARACTERS - live])
            live += len(text)

    finished = await context.sandbox.run(
        SandboxCommand((*_shell(), command), context.workspace.root, float(timeout_seconds)), take
    )
    end = f"[exit code {finished.exit_code}]"
    if finished.timed_out:
        end = f"[ended after {timeout_seconds} s with all it had started]"
    output = clip.text().rstrip("\n")
    return ToolOutcome(
        f"{output}\n{end}" if output else end,
        metadata={
            "exit_code": finished.exit_code,
            "timed_out": finished.timed_out,
            "isolated": context.sandbox.isolated,
        },
    )


def _shell() -> tuple[str, ...]:
    """Return bash, which the permission rules read; sh where there is none."""
    bash = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin")
    # without --norc bash reads ~/.bashrc when it takes its input for a network connection
    return (bash, "--noprofile", "--norc", "-c") if bash else ("/bin/sh", "-c")
